"""A client of a Kubernetes API server, for the doubles of this folder: objects as dictionaries, with nothing but the
standard library, since `helm` runs with whatever Python a conductor's PATH has."""

import http.client
import json
import ssl
from typing import Any
from urllib.parse import quote, urlsplit

Object = dict[str, Any]

_CLUSTER, _PLANE = "cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"
_BOOTSTRAP, _INFRASTRUCTURE = "bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
_RIGHTS = "rbac.authorization.k8s.io"
_OF_KIND: dict[str, tuple[str, str]] = {
    "Namespace": ("v1", "namespaces"),
    "Secret": ("v1", "secrets"),
    "ConfigMap": ("v1", "configmaps"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "Deployment": ("apps/v1", "deployments"),
    "Role": (f"{_RIGHTS}/v1", "roles"),
    "RoleBinding": (f"{_RIGHTS}/v1", "rolebindings"),
    "ClusterRole": (f"{_RIGHTS}/v1", "clusterroles"),
    "ClusterRoleBinding": (f"{_RIGHTS}/v1", "clusterrolebindings"),
    "CustomResourceDefinition": ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "Cluster": (f"{_CLUSTER}/v1beta1", "clusters"),
    "MachineDeployment": (f"{_CLUSTER}/v1beta1", "machinedeployments"),
    "MachineSet": (f"{_CLUSTER}/v1beta1", "machinesets"),
    "Machine": (f"{_CLUSTER}/v1beta1", "machines"),
    "MachineHealthCheck": (f"{_CLUSTER}/v1beta1", "machinehealthchecks"),
    "KubeadmControlPlane": (f"{_PLANE}/v1beta1", "kubeadmcontrolplanes"),
    "KubeadmConfigTemplate": (f"{_BOOTSTRAP}/v1beta1", "kubeadmconfigtemplates"),
    "OpenStackCluster": (f"{_INFRASTRUCTURE}/v1beta1", "openstackclusters"),
    "OpenStackMachine": (f"{_INFRASTRUCTURE}/v1beta1", "openstackmachines"),
    "OpenStackMachineTemplate": (f"{_INFRASTRUCTURE}/v1beta1", "openstackmachinetemplates"),
    "HelmRelease": ("addons.stackhpc.com/v1alpha1", "helmreleases"),
    "Manifests": ("addons.stackhpc.com/v1alpha1", "manifests"),
}

ANSWER_WITHIN_S = 60
WATCHED_S = 50


class ApiError(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def version_of(kind: str) -> str:
    """The `apiVersion` in which the doubles speak of a kind."""
    return _OF_KIND[kind][0]


def collection(kind: str, namespace: str | None = None) -> str:
    """The path of all objects of a kind, or of those in a namespace."""
    version, plural = _OF_KIND[kind]
    place = f"namespaces/{namespace}/" if namespace else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}/{place}{plural}"


def path(thing: Object) -> str:
    """The path of an object."""
    metadata = thing["metadata"]
    return f"{collection(thing['kind'], metadata.get('namespace'))}/{metadata['name']}"


class Server:
    """A server, as the user of a kubeconfig. The file is JSON: the tests write it."""

    def __init__(self, kubeconfig: str) -> None:
        with open(kubeconfig, encoding="utf-8") as file:
            self.kubeconfig = file.read()
        config = json.loads(self.kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._headers: dict[str, str] = {}
        if "token" in user:
            self._headers["Authorization"] = f"Bearer {user['token']}"
        else:
            trust.load_cert_chain(user["client-certificate"], user["client-key"])
        address = urlsplit(cluster["server"])
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=ANSWER_WITHIN_S, context=trust)

    def request(self, method: str, place: str, body: Any = None, query: str = "") -> Any:
        """The answer to a request; a body of PATCH is a JSON merge patch."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind, **self._headers}
        for is_last in (False, True):
            try:
                data = None if body is None else json.dumps(body)
                self._connection.request(method, place + (f"?{query}" if query else ""), data, headers)
                reply = self._connection.getresponse()
                answer = json.loads(reply.read() or b"null")
                break
            except (http.client.HTTPException, ConnectionError):
                # The server may close an idle connection.
                self._connection.close()
                if is_last:
                    raise
        if reply.status >= 300:
            raise ApiError(reply.status, answer.get("message") or str(answer))
        return answer

    def get(self, kind: str, namespace: str | None, name: str) -> Object | None:
        """An object, or nothing."""
        try:
            found: Object = self.request("GET", f"{collection(kind, namespace)}/{name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return found

    def list(self, kind: str, namespace: str | None = None, labels: dict[str, str] | None = None) -> list[Object]:
        """The objects with these labels."""
        selector = ",".join(f"{name}={value}" for name, value in (labels or {}).items())
        query = f"labelSelector={quote(selector)}" if selector else ""
        items: list[Object] = self.request("GET", collection(kind, namespace), query=query)["items"]
        # The items of a list do not say what they are.
        return [{"apiVersion": version_of(kind), "kind": kind, **one} for one in items]

    def wait_for(self, kind: str) -> None:
        """Returns when there is an object of a kind in some namespace, or after a while."""
        place = f"{collection(kind)}?watch=true&timeoutSeconds={WATCHED_S}"
        try:
            self._connection.request("GET", place, headers=self._headers)
            reply = self._connection.getresponse()
            # What is there already comes first.
            line = reply.readline()
        finally:
            # The rest of the answer is not waited for.
            self._connection.close()
        if reply.status >= 300:
            raise ApiError(reply.status, line.decode(errors="replace"))

    def create(self, thing: Object) -> Object:
        """Makes an object."""
        made: Object = self.request("POST", collection(thing["kind"], thing["metadata"].get("namespace")), thing)
        return made

    def patch(self, thing: Object, patch: Object, part: str = "") -> Object:
        """Changes an object, or its part `status`, as the merge patch says."""
        changed: Object = self.request("PATCH", path(thing) + (f"/{part}" if part else ""), patch)
        return changed

    def delete(self, thing: Object) -> None:
        """Deletes an object; one that is gone already is no error."""
        try:
            self.request("DELETE", path(thing))
        except ApiError as error:
            if error.status != 404:
                raise
