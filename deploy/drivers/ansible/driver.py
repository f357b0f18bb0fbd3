#!/usr/bin/env python3
"""A cluster driver that runs one Ansible playbook per call.

The playbook templates/<call>.yml, or templates/update.yml for a resize and for node groups, gets the whole request as the variable `magnum` (from a private file, since it
holds the user's token) and `magnum_result_file`, into which it may write a result of the protocol as JSON:
{"cluster": {"api_address": …}, "node_groups": […]}. Names of tasks become progress; the rest of the output goes
to the conductor's log. Hosts that cannot be reached (exit code 4) are a reason to try again.

Names and labels are a tenant's words, and Ansible evaluates templates inside of variables: every text of the
request is marked `!unsafe`, which takes it literally. Counts are a tenant's, too: more nodes than the setting "max_nodes" are
refused before a playbook sees them. Uuids, which name files, hosts and groups of inventories, are made of letters, digits, - and _.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

UNREACHABLE = 4
# Calls that the playbook for updates serves too, since it brings a cluster to what its node groups say.
UPDATES = ("resize", "create_nodegroup", "update_nodegroup", "delete_nodegroup")
TASK = re.compile(r"^TASK \[(?P<name>.+?)\] \**$")
FATAL = re.compile(r"^(fatal|failed): \[")
PLAIN = re.compile(r"[A-Za-z0-9_-]+")
FOLDER = pathlib.Path(__file__).resolve().parent
# What YAML does not take literally between double quotes, or takes for the end of a line.
SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def say(line):
    print(json.dumps(line), flush=True)


def fail(text, kind="permanent"):
    say({"error": text, "class": kind})
    sys.exit(0)


def quoted(text):
    """A text as YAML between double quotes."""
    return SPECIAL.sub(lambda one: f"\\u{ord(one[0]):04x}", json.dumps(text, ensure_ascii=False))


def literal(value):
    """YAML in which no text is evaluated as a template."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)}: {literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(literal(inner) for inner in value) + "]"
    return f"!unsafe {quoted(value)}" if isinstance(value, str) else json.dumps(value)


def check(call, request, most):
    """Refuses what a playbook should not meet. A cluster of too many nodes can be taken away."""
    groups = request["node_groups"]
    for one in (request["cluster"], *groups):
        if not PLAIN.fullmatch(one["uuid"]):
            fail(f"{one['uuid']!r} is no uuid")
    wanted = sum(group["node_count"] for group in groups if group.get("status") != "DELETE_IN_PROGRESS")
    if call != "delete" and wanted > most:
        fail(f"this driver builds at most {most} nodes for a cluster, not {wanted}")


def play(command, call, request, settings):
    """Runs the playbook; returns its exit code, the last failure it printed, and its result."""
    with tempfile.TemporaryDirectory(prefix="magnum-ansible-") as folder:
        # TemporaryDirectory makes a folder that only this user can enter.
        folder = pathlib.Path(folder)
        result_file = folder / "result.json"
        variables = folder / "variables.yml"
        variables.write_text(literal({
            "magnum": request,
            "magnum_result_file": str(result_file),
            "magnum_state_directory": settings.get("state_directory", "/var/lib/magnum/ansible"),
        }), encoding="utf-8")
        arguments = [
            command,
            "--inventory", settings.get("inventory", "localhost,"),
            "--extra-vars", f"@{variables}",
            str(FOLDER / "templates" / f"{call}.yml"),
        ]
        environment = dict(os.environ, ANSIBLE_NOCOLOR="1", ANSIBLE_RETRY_FILES_ENABLED="0", LC_ALL="C.UTF-8")
        environment.setdefault("HOME", str(folder))
        runner = subprocess.Popen(
            arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            errors="replace",
        )
        last_failure = None
        for line in runner.stdout:
            line = line.rstrip()
            task = TASK.match(line)
            if task:
                say({"progress": task["name"]})
            elif line:
                print(line, file=sys.stderr, flush=True)
            if FATAL.match(line):
                last_failure = line
        code = runner.wait()
        result = json.loads(result_file.read_text()) if code == 0 and result_file.exists() else {}
        return code, last_failure, result


def main():
    request = json.load(sys.stdin)
    if request.get("protocol") != 1:
        fail(f"protocol {request.get('protocol')} is not known to this driver, only 1")
    settings = request.get("settings", {})
    call = request["call"]
    if call == "observe":
        # A playbook works until it is done, so there is never anything new to be seen.
        for one in request["clusters"]:
            say({"cluster": one["cluster"]["uuid"], "result": {}})
        return
    check(call, request, settings.get("max_nodes", 1000))
    playbook = call
    if call in UPDATES and not (FOLDER / "templates" / f"{call}.yml").exists():
        playbook = "update"
    if not (FOLDER / "templates" / f"{playbook}.yml").exists():
        fail(f"there is no playbook templates/{playbook}.yml", "not_supported")
    wanted = settings.get("command", "ansible-playbook")
    command = shutil.which(wanted)
    if command is None:
        fail(f"the command {wanted} is not installed on this conductor, or not in its PATH: install Ansible, "
             f"or set command under [settings] in {FOLDER / 'driver.toml'}")
    try:
        code, last_failure, result = play(command, playbook, request, settings)
    except (OSError, ValueError) as error:
        fail(f"cannot run {wanted}: {error}")
    if code != 0:
        kind = "transient" if code == UNREACHABLE else "permanent"
        fail(f"{playbook}.yml ended with exit code {code}: {last_failure or 'see the conductor log'}", kind)
    if call != "rotate_credential":
        word = {"create": "CREATE", "delete": "DELETE"}.get(call, "UPDATE")
        result.setdefault("cluster", {}).setdefault("status", f"{word}_COMPLETE")
    say({"result": result})


if __name__ == "__main__":
    main()
