"""Every recorded stack comes up in an account without a cluster, has nothing to change then, and goes. With
a cluster, and with a network or a cluster that is brought: tests/worlds."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from rehearsal import paths
from rehearsal.commands.down import _is_of
from tests.graph.test_recorded_stacks import MORE
from tests.rehearsal.aws_world import policy, role
from tests.support.alone import LEFT, Alone, alone
from tests.support.recording import stack_values
from tests.support.stackfile import ENVIRONMENT
from tests.support.stacks import STACKS

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
ELSEWHERE = {
    "brought VPC": "tests/worlds/test_brought_network_world.py",
    "brought cluster": "tests/worlds/test_brought_cluster_world.py",
    "a key of the company and logs": "tests/worlds/test_key_world.py",
}
"""Stacks that need something which exists, or that AWS refuses to delete."""


def settings_of(name: str) -> dict[str, Any]:
    values = stack_values("dev")
    for edit in (STACKS | MORE)[name]:
        edit(values[ENVIRONMENT])
    return values


def prepare(place: Alone, settings: dict[str, Any]) -> None:
    """What a stack file names and does not make."""
    text = json.dumps(settings)
    for name in sorted(set(re.findall(r"arn:aws:iam::123456789012:role/([\w-]+)", text))):
        role(place.account, name, "ec2.amazonaws.com")
    for name in sorted(set(re.findall(r"arn:aws:iam::123456789012:policy/([\w-]+)", text))):
        policy(place.account, name, Action="*", Resource="*")
    for bucket in sorted(set(re.findall(r'"bucket": "([\w-]+)"', text))):
        place.account.client("s3").create_bucket(
            Bucket=bucket,
            CreateBucketConfiguration={"LocationConstraint": settings["aws:region"]},
        )


@pytest.mark.parametrize("name", sorted({*STACKS, *MORE} - ELSEWHERE.keys()))
def test_it_comes_up_has_nothing_to_change_and_goes(name: str) -> None:
    settings = settings_of(name)
    with alone("dev", {"Pulumi.dev.yaml": yaml.safe_dump({"config": settings})}) as place:
        prepare(place, settings)
        before = {thing["id"] for thing in place.left()}
        assert place.do("up") == 0, place.log.read_text()
        assert "error" not in (said := place.pulumi("preview", "--expect-no-changes")), said
        assert place.do("down") in (0, LEFT), place.log.read_text()
        kept = before | {each["id"] for each in place.state() if each.get("id")}
        assert [thing for thing in place.left() if not _is_of(thing, kept)] == []
