"""Calls: what a driver gets, what it asks for, what becomes of what it sets."""

from typing import Any

from conductor import VERSIONS, Connection, Host, Rows, primitive


def test_create_saves_early_and_nothing_is_left_unsaved(connection: Connection, shared_host: Host) -> None:
    rows = Rows()
    done = connection.call("create_cluster", rows, create_timeout=60)
    assert (done["type"], done["cluster"], done["value"]) == ("done", {}, None)
    assert rows.saved == [{"stack_id": "folder-c0000000"}]
    nodes = sorted(path.name for path in (shared_host.built / rows.cluster["uuid"]).glob("*/node-*"))
    assert nodes == ["node-0", "node-0"]


def test_requests_carry_the_scope_of_the_context_and_the_versions_of_the_library(connection: Connection) -> None:
    rows = Rows()
    connection.call("create_cluster", rows, create_timeout=None)
    listed = rows.asked[-1]
    assert (listed["object"], listed["method"], listed["args"]) == ("NodeGroup", "list", [rows.cluster["uuid"]])
    assert listed["versions"] == {"NodeGroup": VERSIONS["NodeGroup"]}
    assert listed["context"] == {
        "is_admin": False,
        "all_tenants": False,
        "project_id": "a" * 32,
        "user_id": "alice",
    }


def test_looks_share_a_worker_and_have_an_administrator_context(connection: Connection) -> None:
    rows = Rows()
    connection.call("create_cluster", rows, create_timeout=60, more=True)
    for _ in range(2):
        done = connection.call("update_cluster_status", rows, context={"admin": True}, more=True)
        assert done["type"] == "done", done
    assert rows.cluster["status"] == "CREATE_COMPLETE"
    assert [group["status"] for group in rows.groups] == ["CREATE_COMPLETE"] * 2
    assert rows.asked[-1]["context"]["is_admin"] and rows.asked[-1]["context"]["all_tenants"]
    health = connection.call("health", rows, context={"admin": True})
    assert health["value"] == {"health_status": "HEALTHY", "health_status_reason": {"api": "ok"}}


def test_unsaved_fields_of_an_upgrade_are_in_its_reply(connection: Connection) -> None:
    rows = Rows()
    template = {"uuid": "f0000000-0000-4000-8000-000000000001", "labels": {"kube_tag": "v1.34.1"}}
    done = connection.call(
        "upgrade_cluster",
        rows,
        new_template=primitive("ClusterTemplate", template),
        node_group=primitive("NodeGroup", rows.groups[1]),
        max_batch_size=1,
        rollback=True,
    )
    assert done["cluster"] == {"cluster_template_id": template["uuid"], "coe_version": "v1.34.1"}


def test_a_group_arrives_with_its_changes_unsaved(connection: Connection) -> None:
    rows = Rows()
    group = primitive("NodeGroup", {**rows.groups[1], "max_node_count": 7}, ("max_node_count",))
    done = connection.call("update_nodegroup", rows, node_group=group)
    assert (done["node_group"], rows.saved) == ({}, [{"max_node_count": 7}])


def test_fields_that_a_failed_call_has_set_are_in_its_reply(connection: Connection) -> None:
    rows = Rows(test_update="unsaved")
    failed = connection.call("update_cluster", rows, rollback=False)
    assert (failed["type"], failed["class"]) == ("failed", "permanent")
    assert failed["cluster"] == {"stack_id": "unsaved-stack", "name": "unsaved-name"}


def test_failures_have_a_class_and_a_message(connection: Connection) -> None:
    def failed(trick: str) -> tuple[Any, ...]:
        reply = connection.call("update_cluster", Rows(test_update=trick), rollback=False, more=True)
        return reply["class"], reply["exception"], reply["message"]

    assert failed("transient") == (
        "transient",
        "requests.exceptions.ConnectionError",
        "the test cloud is away",
    )
    assert failed("permanent") == ("permanent", "builtins.ValueError", "the test cloud has no such flavor")
    assert failed("unsupported") == ("not_supported", "builtins.NotImplementedError", "NotImplementedError")
    reply = connection.call("rotate_ca_certificate", Rows(test_rotate_ca="not_supported"))
    assert (reply["class"], reply["exception"]) == ("not_supported", "magnum.common.exception.NotSupported")


def test_an_exception_of_the_conductor_is_raised_in_the_driver(connection: Connection) -> None:
    class Refusing(Rows):
        def reply(self, request: dict[str, Any]) -> dict[str, Any]:
            return self.raised("ClusterNotFound", "Cluster 100% gone could not be found.")

    failed = connection.call("create_cluster", Refusing(), create_timeout=60)
    assert failed["exception"] == "magnum.common.exception.ClusterNotFound"
    assert (failed["message"], failed["code"]) == ("Cluster 100% gone could not be found.", 404)


def test_a_lost_lease_ends_the_call_behind_every_except(connection: Connection) -> None:
    rows = Rows(test_update="save")
    rows.lease_lost = True
    failed = connection.call("update_cluster", rows, rollback=False)
    assert (failed["class"], failed["message"]) == ("cancelled", "the lease is lost")


def test_an_unknown_driver_and_a_broken_one_say_so(connection: Connection) -> None:
    absent = connection.call("delete_cluster", Rows(), driver="nobody_v1", more=True)
    assert "has no entry point nobody_v1" in absent["message"]
    broken = connection.call("delete_cluster", Rows(), driver="test_missing_v1", more=True)
    assert "No module named 'magnum_test_drivers.nowhere'" in broken["message"]
    constructor = connection.call("delete_cluster", Rows(), driver="test_constructor_v1")
    assert constructor["exception"] == "builtins.FileNotFoundError"


def test_what_a_call_writes_comes_on_its_own_pipe(shared_host: Host) -> None:
    first, second = shared_host.connect(), shared_host.connect()
    first.call("update_cluster", Rows(), rollback=False)
    second.call("delete_cluster", Rows())
    assert first.standard_error() == f"update of {Rows().cluster['uuid']} as {first.pid}\n"
    assert second.standard_error() == f"delete of {Rows().cluster['uuid']} as {second.pid}\n"
    first.close()
    second.close()
