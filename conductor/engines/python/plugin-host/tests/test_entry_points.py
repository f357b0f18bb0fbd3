"""Drivers that can be loaded, and drivers that cannot."""

from typing import Any

from conductor import VERSIONS, Connection, Rows


def described(connection: Connection) -> dict[str, Any]:
    return {one["name"]: one for one in connection.call("list", Rows())["value"]}


def test_a_zygote_has_one_thread_and_knows_its_library(about: dict[str, Any]) -> None:
    assert about["protocol"] == 1
    assert about["threads"] == 1
    assert about["magnum"].startswith("23.")
    assert VERSIONS.items() <= about["objects"].items()


def test_a_broken_package_harms_no_other(about: dict[str, Any]) -> None:
    assert about["drivers"]["test_folders_v1"] is None
    assert about["drivers"]["test_exits_v1"] == "SystemExit: this package wants another machine"
    assert "nowhere" in about["drivers"]["test_missing_v1"]


def test_a_driver_is_described_by_what_it_overrides_and_accepts(connection: Connection) -> None:
    about = described(connection)["test_folders_v1"]
    assert about["provides"] == [{"server_type": "vm", "os": "ubuntu", "coe": "kubernetes"}]
    assert about["overrides"] == [
        "update_cluster_status",
        "get_monitor",
        "rotate_ca_certificate",
        "rotate_credential",
    ]
    assert (about["master_sizes"], about["resizes_masters"], about["beta"]) == ([1, 3], False, False)
    assert (about["package"], about["version"], about["error"]) == ("magnum-test-drivers", "1.0.0", None)


def test_what_keeps_a_driver_from_being_made_is_told(connection: Connection) -> None:
    about = described(connection)
    assert about["test_constructor_v1"]["error"] == "FileNotFoundError: /nowhere/kubeconfig"
    assert about["test_provides_v1"]["error"].startswith("TypeError: string indices must be integers")
    assert about["test_exits_v1"]["error"] == "SystemExit: this package wants another machine"
