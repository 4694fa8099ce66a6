"""The plan of an update beside what is deployed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.stackfile import planned, reading
from trainyard.plan import Planned
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.settings.reading.reader import Reading

THERE = Deployed(
    resources={(PROVIDER, "cluster"): {"kubeconfig": "ours", "clusterIdentifier": "arn"}}
)
NOT_ASKED = "what runs in the cluster was not asked, because this machine has no kubectl"


def nobody(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
    return ()


@pytest.mark.parametrize(
    ("plan", "read", "begins"),
    [
        (planned(), reading(), "environment.jobs"),
        (planned(stack="team-vision"), reading(stack="team-vision"), "team.jobs"),
    ],
    ids=["environment", "team"],
)
def test_an_update_that_cannot_ask_the_cluster_says_so_once(
    plan: Planned, read: Reading, begins: str
) -> None:
    def said(there: Deployed, **asks: bool) -> list[str]:
        found = compared(plan, read.lines, lambda *_: there, nobody, **asks)
        return [str(each) for each in found.warnings if "kubectl" in str(each)]

    [warning] = said(THERE, asks=False)
    assert warning.startswith(begins) and NOT_ASKED in warning
    assert said(THERE) == [] and said(Deployed(), asks=False) == []
