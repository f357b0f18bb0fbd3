"""An account of the management cluster, as an operator makes it: `account.py KUBECONFIG MANIFEST OWN`. Makes what is in the
manifest, and writes a kubeconfig with a token of its service account to the file OWN. May be called again."""

import json
import sys

import yaml
from api import ApiError, Object, Server, path

A_DAY = 24 * 60 * 60


def main(kubeconfig: str, manifest: str, own: str) -> None:
    """All of it, as the administrator of the kubeconfig."""
    server = Server(kubeconfig)
    with open(manifest, encoding="utf-8") as text:
        things: list[Object] = list(yaml.safe_load_all(text))
    for thing in things:
        try:
            server.create(thing)
        except ApiError as error:
            if error.status != 409:
                raise
            server.patch(thing, thing)
    (account,) = (thing for thing in things if thing["kind"] == "ServiceAccount")
    wanted = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": A_DAY}}
    token = server.request("POST", f"{path(account)}/token", wanted)["status"]["token"]
    config = json.loads(server.kubeconfig)
    (user,) = config["users"]
    user["user"] = {"token": token}
    with open(own, "w", encoding="utf-8") as file:
        json.dump(config, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
