#!/usr/bin/env python3
"""The driver @NAME@: builds clusters as folders on disk.

One process per call. The request is one line of JSON on standard input; answers are lines of JSON on standard
output: any number of {"progress": ...}, then one {"result": ...} or {"error": ..., "class": ...}. For the call
"observe" there is one result or error per cluster, each with its "cluster".

Every function here may be called again for what it has done already: it adopts what exists.
"""

import errno
import json
import os
import shutil
import sys
import tempfile

# Errors of the disk that may pass by themselves.
TRANSIENT = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EAGAIN, errno.EBUSY, errno.EMFILE, errno.ENFILE}


def say(**answer):
    print(json.dumps(answer), flush=True)


def folder_of(request, cluster):
    root = request.get("settings", {}).get("root") or "/var/lib/magnum/@NAME@"
    return os.path.join(root, os.path.basename(cluster["uuid"]))


def write(path, value):
    """Writes a file as a whole: a crash leaves the old one or the new one."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, part = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".part-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.replace(part, path)


def nodes_of(folder, group):
    """The names of the node files of a group."""
    try:
        names = os.listdir(os.path.join(folder, "nodes", os.path.basename(group["uuid"])))
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name.startswith("node-"))


def address(group, number):
    """An address of the range that is reserved for documentation."""
    net = "192.0.2" if group.get("role") == "master" else "198.51.100"
    return "%s.%d" % (net, number % 254 + 1)


def build(request, status):
    """Makes the folder have exactly the nodes that the request asks for."""
    cluster, groups = request["cluster"], request["node_groups"]
    folder = folder_of(request, cluster)
    keep = ("uuid", "name", "project_id", "labels", "flavor_id", "master_flavor_id", "keypair")
    write(os.path.join(folder, "cluster.json"), {key: cluster.get(key) for key in keep})
    os.makedirs(os.path.join(folder, "nodes"), exist_ok=True)
    reports = []
    for done, group in enumerate(groups):
        say(progress="node group %s" % group["name"], percent=100 * done // len(groups))
        directory = os.path.join(folder, "nodes", os.path.basename(group["uuid"]))
        wanted = ["node-%04d.json" % number for number in range(group["node_count"])]
        for number, name in enumerate(wanted):
            write(os.path.join(directory, name), {"group": group["name"], "address": address(group, number)})
        for name in set(nodes_of(folder, group)) - set(wanted):
            os.remove(os.path.join(directory, name))
        addresses = [address(group, number) for number in range(group["node_count"])]
        reports.append({"uuid": group["uuid"], "status": status, "node_addresses": addresses})
    known = {os.path.basename(group["uuid"]) for group in groups}
    for name in set(os.listdir(os.path.join(folder, "nodes"))) - known:
        shutil.rmtree(os.path.join(folder, "nodes", name))
    masters = [report for report, group in zip(reports, groups) if group.get("role") == "master"]
    addresses = [one for report in masters for one in report["node_addresses"]]
    changes = {"status": status, "stack_id": "@NAME@-" + cluster["uuid"]}
    if addresses:
        changes["api_address"] = "https://%s:6443" % addresses[0]
    return {"cluster": changes, "node_groups": reports}


def create(request):
    return build(request, "CREATE_COMPLETE")


def update(request):
    return build(request, "UPDATE_COMPLETE")


def delete(request):
    folder = folder_of(request, request["cluster"])
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass  # Deleted by an earlier attempt.
    return {"cluster": {"status": "DELETE_COMPLETE"}}


def look(request, one):
    """How a cluster stands whose work was left in progress."""
    cluster = one["cluster"]
    action = (cluster.get("status") or "CREATE_IN_PROGRESS").split("_")[0]
    folder = folder_of(request, cluster)
    there = os.path.exists(os.path.join(folder, "cluster.json"))
    if action == "DELETE":
        return {"cluster": {"status": "DELETE_IN_PROGRESS" if there else "DELETE_COMPLETE"}}
    if not there:
        reason = "the cluster's folder %s is gone" % folder
        return {"cluster": {"status": action + "_FAILED", "status_reason": reason}}
    complete = all(len(nodes_of(folder, group)) == group["node_count"] for group in one["node_groups"])
    return {"cluster": {"status": action + ("_COMPLETE" if complete else "_IN_PROGRESS")}}


def failure(error):
    """What an error means for the operation."""
    passing = isinstance(error, OSError) and error.errno in TRANSIENT
    return {"error": str(error), "class": "transient" if passing else "permanent"}


def observe(request):
    for one in request["clusters"]:
        uuid = one["cluster"]["uuid"]
        try:
            say(cluster=uuid, result=look(request, one))
        except OSError as error:
            say(cluster=uuid, **failure(error))


def main():
    request = json.loads(sys.stdin.readline())
    call = request.get("call")
    if request.get("protocol") != 1:
        say(**{"error": "protocol %r is not known to this driver" % request.get("protocol"), "class": "permanent"})
    elif call == "observe":
        observe(request)
    elif call in ("create", "update", "delete"):
        try:
            say(result={"create": create, "update": update, "delete": delete}[call](request))
        except OSError as error:
            say(**failure(error))
    else:
        say(**{"error": "the call %r is not supported" % call, "class": "not_supported"})


if __name__ == "__main__":
    main()
