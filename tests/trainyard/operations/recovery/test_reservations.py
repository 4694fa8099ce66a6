"""A reservation that goes on after the destroy is named, with what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import aws_cli
from tests.support.stackfile import Edit, at, values
from tests.support.stacks import BLOCK, H100, RESERVED
from trainyard.operations.recovery.reservations import reservations

MONTHLY = H100 | {"capacity": "reservation", "reservation": RESERVED}
US: dict[str, Any] = {"aws:region": "us-east-1"}


def _folder(folder: Path, *edits: Edit, **settings: Any) -> Path:
    (folder / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    config = values(at("jobs", {}), *edits) | settings
    (folder / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}))
    return folder


def test_a_reservation_is_named_with_its_price_and_the_command_that_ends_it(tmp_path: Path) -> None:
    there = _folder(tmp_path, at("zone", "us-east-1a"), at("pools.h100", MONTHLY), **US)
    [line] = reservations("dev", there)
    assert line.startswith(
        "no destroy ends reservation cr-0123456789abcdef0 of pool h100: 2 x p5.48xlarge cost about $80,358/month, used"
        " or not. To end it: aws ec2 cancel-capacity-reservation"
    )
    assert [*aws_cli.faults(line.partition("To end it: ")[2])] == []


def test_a_block_is_named_with_its_end_since_another_stack_can_use_the_rest(tmp_path: Path) -> None:
    pool = H100 | {"capacity": "block", "reservation": BLOCK}
    [line] = reservations("dev", _folder(tmp_path, at("pools.h100", pool)))
    assert line.startswith(f"Capacity Block {BLOCK['id']} of pool h100 is paid until 20")
    assert line.endswith("no destroy gives money back: another stack of its zone can name it")


@pytest.mark.parametrize(
    "edit",
    [
        at("pools.h100", H100),
        at("pools.h100", MONTHLY | {"max_nodes": -1}),
    ],
    ids=["on demand", "a stack file with errors"],
)
def test_nothing_is_said_where_no_reservation_is_known(edit: Edit, tmp_path: Path) -> None:
    assert reservations("dev", _folder(tmp_path, edit)) == []


def test_nothing_is_said_without_a_stack_file(tmp_path: Path) -> None:
    assert reservations("dev", tmp_path) == []
