#!/usr/bin/env python3
"""Reports what the drivers of the recording report; the label fake_fail names a call that fails."""
import json
import os
import sys

request = json.load(sys.stdin)
call, cluster = request["call"], request["cluster"]
name = os.environ["MAGNUM_DRIVER"].removeprefix("zz_").removeprefix("fake_")


def nodes(group):
    third = 1 if group["role"] == "master" else 2
    addresses = [f"10.0.{third}.{n + 1}" for n in range(group["node_count"])]
    return {"uuid": group["uuid"], "status": "CREATE_COMPLETE", "node_addresses": addresses}


if cluster["labels"].get("fake_fail") == call:
    answer = {"error": f"fake driver was told to fail {call}", "class": "permanent"}
elif call == "create":
    changes = {
        "status": "CREATE_COMPLETE",
        "stack_id": f"{name}-{cluster['uuid']}",
        "api_address": "https://192.0.2.1:6443",
        "coe_version": "v1.31.4",
    }
    answer = {"result": {"cluster": changes, "node_groups": [nodes(group) for group in request["node_groups"]]}}
elif call == "rotate_credential":
    answer = {"result": {}}
else:
    # The recording was made while these went on.
    action = "DELETE" if call == "delete" else "UPDATE"
    answer = {"result": {"cluster": {"status": f"{action}_IN_PROGRESS"}}}
    if call == "create_nodegroup":
        group = {"uuid": request["node_group"], "status": "CREATE_IN_PROGRESS", "stack_id": cluster["stack_id"]}
        answer["result"]["node_groups"] = [group]
print(json.dumps(answer))
