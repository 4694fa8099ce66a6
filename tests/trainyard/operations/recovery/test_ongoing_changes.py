"""What a repair waits for before it reads: an object that AWS is still changing."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.operations.reach.pulumi import PulumiError
from trainyard.operations.recovery import ongoing_changes

CLUSTER = {
    "urn": "urn:pulumi:dev::trainyard::aws:eks/cluster:Cluster::cluster",
    "type": "aws:eks/cluster:Cluster",
    "id": "train",
    "inputs": {"name": "train"},
}


class Account:
    """EKS, which says that a cluster changes for so many questions."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds

    def client(self, service: str) -> Any:
        assert service == "eks"
        return self

    def describe_cluster(self, name: str) -> dict[str, Any]:
        self.rounds -= 1
        return {"cluster": {"name": name, "status": "UPDATING" if self.rounds >= 0 else "ACTIVE"}}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ongoing_changes.time, "sleep", lambda _: None)


def test_a_change_that_goes_on_is_awaited_before_anybody_reads_the_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    account: Any = Account(2)
    ongoing_changes.await_end(account, [CLUSTER], 60)
    said = "waiting for Cluster cluster, which AWS is still changing"
    assert capsys.readouterr().out.splitlines() == [said, said]
    assert account.rounds == -1


def test_the_patience_ends() -> None:
    account: Any = Account(5)
    with pytest.raises(PulumiError, match="AWS still changes these after 0 s: Cluster cluster"):
        ongoing_changes.await_end(account, [CLUSTER], 0)
