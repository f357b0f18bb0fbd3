#!/usr/bin/env python3
"""A cluster driver that builds folders: an example of the exec protocol, and a driver for tests.

    <root>/clusters/<cluster uuid>/cluster.json            what was built, and by which operation
    <root>/clusters/<cluster uuid>/<group>/node-<n>/       one folder per node, with node.json in it; <group> is
                                                           the node group's name and the start of its uuid. Calls
                                                           that name nodes call a node <group>/node-<n>, or by its
                                                           address
    <root>/clusters/<cluster uuid>/removed.json            numbers of nodes that were removed by name, by the group's uuid:
                                                           no other node gets them
    <root>/clusters/<cluster uuid>/certificates.json       which certificates the cluster has
    <root>/clusters/<cluster uuid>/credential.json         what the cluster would use towards a cloud
    <root>/clusters/<cluster uuid>/notes.json              what its users have put there by this driver's own API
    <root>/locks/<cluster uuid>                            locked while a call works on the cluster
    <root>/journal.log                                     one JSON line per begin, effect and end

<root> is $DISK_DRIVER_ROOT, else the setting "root". Every effect may be repeated: what exists is adopted, what
is gone stays gone, and an operation that was finished answers again what it answered before.

Labels of the cluster that change its behaviour, for tests and demonstrations: not obeyed unless the setting "obey_labels" is
true, since who makes a cluster chooses its labels.

    disk_delay_ms   time that each node takes (default 0)
    disk_async      "true": calls only begin; observe finishes them when the time is over
    disk_fail       permanent | transient | exit75 | exit1 | crash | hang | garbage | flood | silent
    disk_fail_on    the call that fails: create (default), update, resize, …, api, or all
    disk_fail_times fail only so many times, then work (default: always)
    disk_health     the health to report, whatever the folders say; another word: no answer
    disk_scale      the nodes that go first when a group shrinks: newest (default), oldest; twice: a senseless choice
    disk_monitor    "senseless": more processors than there are; another word: no answer

Addresses of nodes are made up from the cluster's uuid; nobody listens there. More nodes than the setting "max_nodes" are
refused: counts are a tenant's words, too.
"""

import datetime
import fcntl
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import time


def say(line):
    print(json.dumps(line), flush=True)


def log(text):
    print(text, file=sys.stderr, flush=True)


def write(path, value):
    """Replaces a file as a whole: a crash leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(value, indent=2) + "\n")
    draft.replace(path)


def read(path):
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def ignore_labels(cluster):
    """Takes out the labels that change what this driver does."""
    labels = cluster.get("labels") or {}
    obeyed = [name for name in labels if name.startswith("disk_")]
    if obeyed:
        log(f"obey_labels is not set, so these labels of {cluster['uuid']} are ignored: {', '.join(obeyed)}")
    cluster["labels"] = {name: value for name, value in labels.items() if name not in obeyed}


def most_nodes(request):
    return request.get("settings", {}).get("max_nodes", 1000)


def bound(request, most):
    """Refuses a cluster of too many nodes. It can be taken away."""
    if request.get("call") == "delete" or (request["cluster"].get("status") or "").startswith("DELETE_"):
        return
    groups = [group for group in request["node_groups"] if group.get("status") != "DELETE_IN_PROGRESS"]
    wanted = sum(group["node_count"] for group in groups)
    if wanted > most:
        raise Failure(f"this driver builds at most {most} nodes for a cluster, not {wanted}")


def numbers(folder, group):
    """The numbers of the nodes that a group shall have: counted from 0, without those that were removed by name."""
    removed = (read(folder / "removed.json") or {}).get(group["uuid"], [])
    free = (number for number in itertools.count() if number not in removed)
    return list(itertools.islice(free, group["node_count"]))


def folder_of(cluster_folder, group):
    return cluster_folder / f"{safe(group['name'])}-{safe(group['uuid'])[:8]}"


def number_of(node):
    return int(node.name.rpartition("-")[2])


def safe(text):
    """A name that users choose, as a name of a folder."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", text)


class Journal:
    """What this driver did, for people and for tests that count effects."""

    def __init__(self, root, call, operation, cluster):
        self.path = root / "journal.log"
        self.about = {"operation": operation, "call": call, "cluster": cluster, "pid": os.getpid()}

    def add(self, event, **more):
        at = datetime.datetime.now(datetime.timezone.utc).isoformat()
        line = json.dumps({"at": at, "event": event, **self.about, **more}) + "\n"
        # One write in append mode: lines of several processes do not mix.
        with open(self.path, "ab", buffering=0) as journal:
            journal.write(line.encode())


# The first word of the statuses that a call leads to; all others are updates.
WORDS = {"create": "CREATE", "delete": "DELETE"}
CALLS = (
    "create", "update", "delete", "resize", "upgrade", "create_nodegroup", "update_nodegroup", "delete_nodegroup",
    "rotate_ca", "rotate_credential", "rebuild", "reboot",
)
CERTIFICATES = ("ca_cert_ref", "magnum_cert_ref", "etcd_ca_cert_ref", "front_proxy_ca_cert_ref")


class Failure(Exception):
    def __init__(self, text, kind="permanent"):
        super().__init__(text)
        self.kind = kind


class Cluster:
    """One cluster's folder, locked while the object lives."""

    def __init__(self, root, call, request, lock=True):
        self.root = root
        self.call = call
        self.cluster = request["cluster"]
        self.groups = request["node_groups"]
        self.operation = request.get("operation")
        self.target = request.get("node_group")
        self.new_template = request.get("new_template")
        self.batch = request.get("max_batch_size") or 1
        self.names = request.get("nodes") or []
        self.to_remove = request.get("nodes_to_remove") or []
        self.reboot_type = request.get("reboot_type")
        self.labels = self.cluster.get("labels") or {}
        self.name = safe(self.cluster["uuid"])
        self.folder = root / "clusters" / self.name
        self.record_file = self.folder / "cluster.json"
        self.journal = Journal(root, call, self.operation, self.cluster["uuid"])
        if lock:
            self.lock()

    def lock(self):
        locks = self.root / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        self.lock_file = open(locks / self.name, "a")
        try:
            fcntl.flock(self.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.journal.add("overlap")
            raise Failure("another process works on this cluster", "transient")

    def delay(self):
        return int(self.labels.get("disk_delay_ms", "0")) / 1000

    def is_async(self):
        return self.labels.get("disk_async", "false").lower() == "true"

    def address(self, group, number):
        digest = hashlib.sha256(f"{self.cluster['uuid']}/{group}/{number}".encode()).digest()
        return f"10.{digest[0]}.{digest[1]}.{digest[2] % 254 + 1}"

    def node(self, group, number):
        return folder_of(self.folder, group) / f"node-{number}"

    def goes(self, group):
        """Whether a group is being taken away, on its own or with its cluster."""
        return self.call == "delete" or group.get("status") == "DELETE_IN_PROGRESS"

    def wanted(self):
        return [(g, n) for g in self.groups if not self.goes(g) for n in numbers(self.folder, g)]

    def surplus(self):
        wanted = {self.node(group, number) for group, number in self.wanted()}
        return [node for node in sorted(self.folder.glob("*/node-*")) if node not in wanted]

    def missing(self):
        return [(g, n) for g, n in self.wanted() if not (self.node(g, n) / "node.json").exists()]

    def build(self, pause):
        """Brings the folders to what the node groups say. Each step is an effect of its own."""
        missing, surplus = self.missing(), self.surplus()
        steps = len(missing) + len(surplus)
        for done, (group, number) in enumerate(missing):
            folder = self.node(group, number)
            node = f"{folder.parent.name}/{folder.name}"
            say({"progress": f"building {node}", "percent": 100 * done / steps})
            time.sleep(pause)
            address = self.address(group["name"], number)
            write(folder / "node.json", {
                "role": group["role"], "address": address, "flavor": group.get("flavor_id"),
                "template": self.cluster.get("cluster_template_id"), "built": time.time(),
            })
            self.journal.add("effect", effect="build", node=node)
        for done, node in enumerate(surplus, len(missing)):
            name = f"{node.parent.name}/{node.name}"
            say({"progress": f"removing {name}", "percent": 100 * done / steps})
            time.sleep(pause)
            shutil.rmtree(node, ignore_errors=True)
            self.journal.add("effect", effect="remove", node=name)
        for group in self.folder.glob("*/"):
            if not any(group.iterdir()):
                group.rmdir()

    def remove_named(self):
        """Takes the nodes that a resize names out of the count, once. All of them are known before one is touched."""
        if not self.to_remove:
            return
        group = next(one for one in self.groups if one["uuid"] == self.target)
        file = self.folder / "removed.json"
        record = read(file) or {}
        removed = record.get(group["uuid"], [])
        there = [number_of(node) for node in folder_of(self.folder, group).glob("node-*")]
        known = {}
        for number in {*there, *removed}:
            known[f"{folder_of(self.folder, group).name}/node-{number}"] = number
            known[self.address(group["name"], number)] = number
        unknown = [name for name in self.to_remove if name not in known]
        if unknown:
            raise Failure(f"there is no node {', '.join(unknown)} in {group['name']}")
        write(file, {**record, group["uuid"]: sorted({*removed, *(known[name] for name in self.to_remove)})})

    def upgrade(self, pause):
        """Writes the new template into each node that does not have it, so many at a time."""
        template = self.new_template["uuid"]
        files = [self.node(group, number) / "node.json" for group, number in self.wanted()]
        old = [file for file in files if (read(file) or {}).get("template") != template]
        for done in range(0, len(old), self.batch):
            batch = old[done:done + self.batch]
            names = ", ".join(f"{file.parent.parent.name}/{file.parent.name}" for file in batch)
            say({"progress": f"upgrading {names}", "percent": 100 * done / len(old)})
            time.sleep(pause)
            for file in batch:
                write(file, {**(read(file) or {}), "template": template})
                self.journal.add("effect", effect="upgrade", node=str(file.parent.relative_to(self.folder)))

    def meant(self):
        """The nodes that a rebuild or a reboot is about: their folders. All of them are known before one is touched."""
        nodes = {}
        for group, number in self.wanted():
            if self.target is None or group["uuid"] == self.target:
                folder = self.node(group, number)
                nodes[f"{folder.parent.name}/{folder.name}"] = (folder, self.address(group["name"], number))
        unknown = [name for name in self.names if not any(name in (node, at) for node, (_, at) in nodes.items())]
        if unknown:
            raise Failure(f"there is no node {', '.join(unknown)}; there are {', '.join(nodes)}")
        return {
            name: folder for name, (folder, address) in nodes.items()
            if not self.names or name in self.names or address in self.names
        }

    def each_meant(self, doing, pause, effect):
        """Does something to each node that is meant, once for an operation however often that is repeated."""
        nodes = self.meant()
        for done, (name, folder) in enumerate(nodes.items()):
            file = folder / "node.json"
            node = read(file) or {}
            if node.get(doing) == self.operation:
                continue
            say({"progress": f"{doing} of {name}", "percent": 100 * done / len(nodes)})
            time.sleep(pause)
            effect(folder, file, {**node, doing: self.operation})
            self.journal.add("effect", effect=doing, node=name, how=self.reboot_type)

    def rebuild(self, pause):
        def build_anew(folder, file, node):
            # What was on the old node is gone, its restarts included.
            shutil.rmtree(folder)
            kept = {key: value for key, value in node.items() if key not in ("boots", "last_boot", "reboot")}
            write(file, {**kept, "built": time.time()})
        self.each_meant("rebuild", pause, build_anew)

    def reboot(self, pause):
        def restart(_folder, file, node):
            write(file, {**node, "boots": node.get("boots", 0) + 1, "last_boot": self.reboot_type})
        self.each_meant("reboot", pause, restart)

    def rotate_credential(self):
        """A new credential for each operation, and the same one for its repetitions."""
        name = hashlib.sha256(f"credential of {self.operation}".encode()).hexdigest()[:16]
        write(self.folder / "credential.json", {"name": name})
        self.journal.add("effect", effect="rotate-credential", name=name)

    def fail_as_told(self):
        """Misbehaves as the labels say."""
        how = self.labels.get("disk_fail")
        on = self.labels.get("disk_fail_on", "create")
        if not how or on not in (self.call, "all"):
            return
        times = self.labels.get("disk_fail_times")
        if times is not None:
            counter = self.root / "failures" / f"{self.name}-{self.call}"
            count = read(counter) or 0
            if count >= int(times):
                return
            write(counter, count + 1)
        self.journal.add("failure", how=how)
        if how in ("permanent", "transient"):
            raise Failure(f"the label disk_fail asks for a {how} failure", how)
        log(f"the label disk_fail asks for: {how}")
        if how == "exit75":
            sys.exit(75)
        if how == "exit1":
            sys.exit(1)
        if how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "silent":
            sys.exit(0)
        if how == "garbage":
            print("PLAY [all] ***** this is not JSON", flush=True)
        while how == "flood":
            say({"progress": "and so on, and so on " * 1000})
        while True:
            time.sleep(1)

    def group_results(self, outcome):
        groups = []
        for group in self.groups:
            if self.target is not None and group["uuid"] != self.target:
                continue
            word = {"create_nodegroup": "CREATE", "delete_nodegroup": "DELETE"}.get(self.call, self.word())
            status = f"{word}_{outcome}"
            if self.goes(group):
                groups.append({"uuid": group["uuid"], "status": status})
                continue
            built = numbers(self.folder, group)
            addresses = [self.address(group["name"], n) for n in built if self.node(group, n).exists()]
            seen = {"uuid": group["uuid"], "status": status, "node_addresses": addresses}
            if self.new_template and self.new_template.get("image_id"):
                seen["image_id"] = self.new_template["image_id"]
            groups.append(seen)
        return groups

    def word(self):
        return WORDS.get(self.call, "UPDATE")

    def result(self, outcome, reason=None):
        if self.call == "rotate_credential" and outcome == "COMPLETE" and not reason:
            # The cluster's status is none of this call's business.
            return {}
        cluster = {"status": f"{self.word()}_{outcome}", "stack_id": f"disk-{self.cluster['uuid']}"}
        if reason:
            cluster["status_reason"] = reason
        masters = [g for g in self.groups if g["role"] == "master" and g["node_count"] > 0]
        if masters and outcome == "COMPLETE" and self.call != "delete":
            first = numbers(self.folder, masters[0])[0]
            cluster["api_address"] = f"https://{self.address(masters[0]['name'], first)}:6443"
            labels = (self.new_template or {}).get("labels") or self.labels
            if "kube_tag" in labels:
                cluster["coe_version"] = labels["kube_tag"]
        return {"cluster": cluster, "node_groups": self.group_results(outcome)}

    def run(self):
        """One call, from begin to end, or only its begin."""
        record = read(self.record_file) or {}
        if record.get("operation") == self.operation and "result" in record:
            log("this operation was finished before; answering again")
            self.journal.add("again")
            return record["result"]
        self.journal.add("begin")
        self.fail_as_told()
        if self.call in ("rebuild", "reboot"):
            # Names that no node has are refused now, not when an observation finds them.
            self.meant()
        self.remove_named()
        if self.is_async() and (self.call != "delete" or self.folder.exists()):
            steps = max(1, len(self.missing()) + len(self.surplus()))
            if record.get("operation") != self.operation:
                due = time.time() + steps * self.delay()
                write(self.record_file, {
                    "operation": self.operation, "call": self.call, "due": due,
                    "target": self.target, "new_template": self.new_template, "batch": self.batch,
                    "names": self.names, "reboot_type": self.reboot_type,
                })
            self.journal.add("end", outcome="in progress")
            return self.result("IN_PROGRESS", "the disk is working")
        return self.finish(self.delay())

    def finish(self, pause):
        self.build(pause)
        if self.call == "upgrade":
            self.upgrade(pause)
        if self.call in ("create", "rotate_ca"):
            write(self.folder / "certificates.json", {name: self.cluster.get(name) for name in CERTIFICATES})
        if self.call == "rotate_credential":
            self.rotate_credential()
        if self.call == "rebuild":
            self.rebuild(pause)
        if self.call == "reboot":
            self.reboot(pause)
        result = self.result("COMPLETE")
        if self.call == "delete":
            if self.folder.exists():
                shutil.rmtree(self.folder)
                self.journal.add("effect", effect="remove-cluster")
        else:
            write(self.record_file, {"operation": self.operation, "call": self.call, "result": result})
        self.journal.add("end", outcome="complete")
        return result

    def observe(self):
        """How far an asynchronous operation is; finishes it when its time has come."""
        status = self.cluster.get("status") or ""
        record = read(self.record_file)
        if status.startswith("DELETE_") and record is None:
            self.call = "delete"
            return self.result("COMPLETE")
        if record is None or "due" not in record:
            return record["result"] if record else {}
        self.call = record["call"]
        self.operation = record["operation"]
        self.target = record.get("target")
        self.new_template = record.get("new_template")
        self.batch = record.get("batch") or 1
        self.names = record.get("names") or []
        self.reboot_type = record.get("reboot_type")
        self.journal.about.update(operation=self.operation, call=f"observe-{self.call}")
        left = record["due"] - time.time()
        if left > 0:
            return self.result("IN_PROGRESS", f"{left:.0f} seconds to go")
        result = self.finish(0)
        # A call that changes no status was in progress all the same, since it was observed.
        return result or {"cluster": {"status": "UPDATE_COMPLETE"}}


def health(root, request):
    """Which of its nodes a cluster has. Takes no lock: it only reads, also while another call works."""
    labels = request["cluster"].get("labels") or {}
    if "disk_health" in labels and labels["disk_health"] not in ("HEALTHY", "UNHEALTHY", "UNKNOWN"):
        raise Failure(f"the label disk_health asks for the failure {labels['disk_health']}", "transient")
    folder = root / "clusters" / safe(request["cluster"]["uuid"])
    built = (folder / "cluster.json").exists()
    reasons = {"api": "ok" if built else "the cluster's folder is gone"}
    for group in request["node_groups"]:
        for number in numbers(folder, group):
            node = folder_of(folder, group) / f"node-{number}"
            reasons[f"{group['name']}-{number}.Ready"] = str((node / "node.json").exists())
    healthy = built and "False" not in reasons.values()
    status = labels.get("disk_health") or ("HEALTHY" if healthy else "UNHEALTHY")
    return {"cluster": {"health_status": status, "health_status_reason": reasons}}


def usage(cluster, query):
    """How much the cluster takes on the disk. Takes no lock: it only reads, also while another call works."""
    if [name for name, _ in query if name != "unit"]:
        return {"status": 400, "body": "the only argument is unit"}
    units = {"B": 1, "KiB": 1024}
    unit = dict(query).get("unit", "B")
    if unit not in units:
        return {"status": 400, "body": f"unit must be one of {', '.join(units)}"}
    if not cluster.folder.exists():
        return {"status": 404, "body": "the cluster has no folder yet, or no more"}
    sizes = {
        node.parent.name + "/" + node.name: sum(file.stat().st_size for file in node.glob("*") if file.is_file())
        for node in sorted(cluster.folder.glob("*/node-*"))
    }
    used = {name: size / units[unit] for name, size in sizes.items()}
    notes = (read(cluster.folder / "notes.json") or {}).get("text")
    return {"status": 200, "body": {"unit": unit, "nodes": used, "notes": notes}}


def names(cluster, query):
    """What the nodes of a group are called where a resize names some. Takes no lock: it only reads."""
    group = next(one for one in cluster.groups if one["uuid"] == dict(query)["node_group"])
    nodes = sorted(folder_of(cluster.folder, group).glob("node-*"))
    return {"status": 200, "body": {"nodes": [
        [f"{node.parent.name}/{node.name}", cluster.address(group["name"], number_of(node))] for node in nodes]}}


def note(cluster, body):
    """Keeps a note of the users. Nobody else works on the cluster meanwhile."""
    text = (body or {}).get("text")
    if not isinstance(text, str):
        return {"status": 422, "body": "text must be a text"}
    if not cluster.folder.exists():
        return {"status": 409, "body": "the cluster has no folder yet, or no more"}
    time.sleep(cluster.delay())
    write(cluster.folder / "notes.json", {"text": text})
    cluster.journal.add("effect", effect="note")
    return {"status": 204}


def own_api(root, request):
    """This driver's own API: the routes that driver.toml declares, and what the service itself asks; no others arrive
    here."""
    route = (request["method"], request["path"])
    reads = {("GET", "disk/usage"): usage, ("GET", "@nodes"): names}.get(route)
    cluster = Cluster(root, "api", request, lock=not reads)
    cluster.journal.add("begin")
    cluster.fail_as_told()
    reply = reads(cluster, request["query"]) if reads else note(cluster, request["body"])
    cluster.journal.add("end", outcome=reply["status"])
    return reply


def scale(root, request):
    """Which nodes of a shrinking group go: broken ones first, then the newest. Takes no lock: it only reads."""
    folder = root / "clusters" / safe(request["cluster"]["uuid"])
    wish = (request["cluster"].get("labels") or {}).get("disk_scale", "newest")
    group = next(one for one in request["node_groups"] if one["uuid"] == request["node_group"])

    def rank(node):
        record = read(node / "node.json")
        age = ((record or {}).get("built", 0), number_of(node))
        return (record is not None, age if wish == "oldest" else tuple(-part for part in age))

    nodes = sorted(folder_of(folder, group).glob("node-*"), key=rank)[:request["surplus"]]
    names = [f"{node.parent.name}/{node.name}" for node in nodes]
    if wish == "twice":
        names = names[:1] * 2
    Journal(root, "scale", request.get("operation"), request["cluster"]["uuid"]).add("chosen", nodes=names)
    return {"nodes": names}


# What a node of this driver has. Its memory is what its files take; its processors are this machine's.
NODE_BYTES = 64 * 1024


def monitor(root, request):
    """What a cluster uses: bytes of its nodes' files, and the load of this machine. Takes no lock: it only reads."""
    wish = (request["cluster"].get("labels") or {}).get("disk_monitor")
    if wish not in (None, "senseless"):
        raise Failure(f"the label disk_monitor asks for the failure {wish}", "transient")
    folder = root / "clusters" / safe(request["cluster"]["uuid"])
    if not (folder / "cluster.json").exists():
        raise Failure("the cluster's folder is gone")
    cores = os.cpu_count() or 1
    busy = min(os.getloadavg()[0], cores)

    def figures(nodes):
        used = sum(file.stat().st_size for node in nodes for file in node.glob("*") if file.is_file())
        total = NODE_BYTES * len(nodes)
        cpu = {
            "cpu_percent": 250 if wish == "senseless" else 100 * busy / cores,
            "cpu_used_cores": busy, "cpu_total_cores": cores,
        }
        memory = {"memory_used_bytes": used, "memory_total_bytes": total}
        return {**cpu, **memory, **({"memory_percent": min(100, 100 * used / total)} if total else {})}

    groups = {group["uuid"]: list(folder_of(folder, group).glob("node-*")) for group in request["node_groups"]}
    return {
        "cluster": figures([node for nodes in groups.values() for node in nodes]),
        "node_groups": [{"uuid": uuid, **figures(nodes)} for uuid, nodes in groups.items()],
    }


def look_at_all(root, request, look):
    for one in request["clusters"]:
        uuid = one["cluster"]["uuid"]
        try:
            bound(one, most_nodes(request))
            say({"cluster": uuid, "result": look(root, one)})
        except Failure as failure:
            say({"cluster": uuid, "error": str(failure), "class": failure.kind})


def main():
    request = json.load(sys.stdin)
    if request.get("protocol") != 1:
        raise Failure(f"protocol {request.get('protocol')} is not known to this driver, only 1")
    settings = request.get("settings", {})
    if not settings.get("obey_labels", False):
        for one in request.get("clusters", [request]):
            ignore_labels(one["cluster"])
    root = os.environ.get("DISK_DRIVER_ROOT") or settings.get("root")
    if not root:
        raise Failure("set DISK_DRIVER_ROOT, or root under [settings] in driver.toml")
    root = pathlib.Path(root)
    root.mkdir(parents=True, exist_ok=True)
    call = request["call"]
    if call == "observe":
        return look_at_all(root, request, lambda root, one: Cluster(root, "observe", one).observe())
    if call == "health":
        return look_at_all(root, request, health)
    if call == "monitor":
        return look_at_all(root, request, monitor)
    bound(request, most_nodes(request))
    if call == "api":
        return say({"result": own_api(root, request)})
    if call == "scale":
        return say({"result": scale(root, request)})
    if call not in CALLS:
        raise Failure(f"cannot {call} clusters", "not_supported")
    cluster = Cluster(root, call, request)

    def stop(_signal, _frame):
        cluster.journal.add("stopped")
        os._exit(143)

    signal.signal(signal.SIGTERM, stop)
    say({"result": cluster.run()})


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        say({"error": str(failure), "class": failure.kind})
    except OSError as error:
        # A full or broken disk may be mended.
        say({"error": f"the disk: {error}", "class": "transient"})
