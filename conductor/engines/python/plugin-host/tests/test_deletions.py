"""Deletions of stacks: a double of a Heat driver deletes those of a cluster, as Magnum's does."""

from types import SimpleNamespace
from typing import Any

import pytest
from heatclient import exc as heat
from magnum_plugin_host import deletions


class HeatDriver:
    """Deletes the stacks in order. `answers` has what Heat says of some."""

    def __init__(self, **answers: Exception) -> None:
        self.answers = answers
        self.asked: list[str | None] = []

    def delete_cluster(self, stacks: list[str | None]) -> None:
        for stack in stacks:
            self._delete_stack("context", SimpleNamespace(), stack)

    def _delete_stack(self, context: Any, clients: Any, stack_id: str | None) -> None:
        self.asked.append(stack_id)
        if str(stack_id) in self.answers:
            raise self.answers[str(stack_id)]


def test_a_stack_that_is_gone_does_not_keep_the_others_from_being_deleted() -> None:
    driver = HeatDriver(extra=heat.HTTPNotFound())
    gone = deletions.go_on_without(driver)
    driver.delete_cluster(["extra", "main"])
    assert (driver.asked, gone) == (["extra", "main"], ["extra"])


def test_the_stack_of_a_cluster_that_has_none_is_gone() -> None:
    driver = HeatDriver(**{"None": heat.HTTPNotFound()})
    gone = deletions.go_on_without(driver)
    driver.delete_cluster([None])
    assert gone == [None]


@pytest.mark.parametrize("answer", [heat.HTTPConflict(), heat.HTTPForbidden(), ValueError("Not Found")])
def test_any_other_answer_is_the_drivers_failure(answer: Exception) -> None:
    driver = HeatDriver(main=answer)
    gone = deletions.go_on_without(driver)
    with pytest.raises(type(answer)):
        driver.delete_cluster(["main"])
    assert gone == []


def test_a_driver_that_deletes_no_stacks_is_left_alone() -> None:
    driver = SimpleNamespace()
    assert deletions.go_on_without(driver) == []
    assert not vars(driver)


def test_a_stack_that_heat_is_at_work_on_can_be_deleted_later() -> None:
    assert deletions.is_busy("delete_cluster", heat.HTTPConflict())
    assert deletions.is_busy("delete_nodegroup", heat.HTTPConflict())
    assert not deletions.is_busy("delete_cluster", heat.HTTPForbidden())
    # Somebody else has a stack of this name.
    assert not deletions.is_busy("create_cluster", heat.HTTPConflict())
