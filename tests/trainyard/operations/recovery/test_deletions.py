"""What a repair waits for: objects that are being deleted, with an account and a cluster that only answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.operations.reach.pulumi import PulumiError
from trainyard.operations.recovery import deletions

NAT, POOL = "aws:ec2/natGateway:NatGateway", "kubernetes:karpenter.sh/v1:NodePool"


def held(kind: str, name: str, **more: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::trainyard::{kind}::{name}"
    return {"urn": urn, "type": kind, "id": name, "inputs": {"metadata": {"name": name}}, **more}


class Going:
    """The account and the cluster at once: each object goes after so many questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **rounds: float) -> None:
        self.rounds, self.asked = rounds, list[str]()
        monkeypatch.setattr(deletions, "leaves", lambda _, resource: self.goes(resource["id"]))
        monkeypatch.setattr(deletions.time, "sleep", lambda _: None)

    def goes(self, name: str) -> bool:
        self.asked.append(name)
        self.rounds[name] = self.rounds.get(name, 0) - 1
        return self.rounds[name] >= 0

    def leaving(self, objects: Mapping[str, Any]) -> list[str]:
        return [urn for urn in objects if self.goes(urn.split("::")[-1])]

    def awaited(self, *resources: dict[str, Any], pending: tuple[Any, ...] = ()) -> list[str]:
        begun = [{"type": "deleting", "resource": each} for each in pending]
        state = {"deployment": {"resources": [*resources], "pending_operations": begun}}
        both: Any = self
        return deletions.awaited(both, both, state, 60)


def test_what_is_being_deleted_is_awaited_and_then_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cancelled destroy leaves no pending operation: what the state holds is asked for, too."""
    nat, pool, whole = held(NAT, "nat"), held(POOL, "pool"), held(NAT, "whole")
    going = Going(monkeypatch, nat=2, pool=1)
    assert sorted(going.awaited(pool, whole, pending=(nat,))) == sorted([nat["urn"], pool["urn"]])
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"waiting for {who}, which is still being deleted" for who in ("nat, pool", "nat")
    ]


def test_what_goes_at_once_is_not_the_stacks_or_was_never_made_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    role = held("aws:iam/role:Role", "role")
    unmade = held(NAT, "unmade") | {"id": ""}
    going = Going(monkeypatch, role=9, existing=9, unmade=9)
    assert going.awaited(role, held(NAT, "existing", external=True), unmade) == []
    assert going.asked == []


def test_an_object_that_is_gone_from_the_cluster_is_read_again_and_no_job_is() -> None:
    """A job that is read again is started again by the next update."""

    class Empty:
        def gone(self, objects: Mapping[str, Any]) -> list[str]:
            return [*objects]

    cluster: Any = Empty()
    job = held("kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob", "job")
    of_others = held(POOL, "theirs", external=True)
    pool = held(POOL, "pool")
    state = {"deployment": {"resources": [pool, job, held(NAT, "nat"), of_others]}}
    assert deletions.gone(cluster, state) == [pool["urn"]]


def test_what_does_not_go_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    going = Going(monkeypatch, pool=float("inf"))
    monkeypatch.setattr(deletions.time, "monotonic", iter((0, 1, 61)).__next__)
    with pytest.raises(PulumiError, match="still being deleted after 60 s: pool"):
        going.awaited(held(POOL, "pool"))


def test_only_types_that_can_be_found_are_slow() -> None:
    slow = [row.finder for row in AWS_TYPES.values() if row.awaited]
    assert slow and all(finder and finder.state for finder in slow)
