"""Which calls a resource type needs."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rehearsal.aws.iam_actions import IAM_ACTIONS
from tests.support.recording import CHECKOUT
from trainyard.catalog.aws import permissions
from trainyard.catalog.aws.permissions import HANDLERS, READS
from trainyard.catalog.aws.questions import (
    BUCKET_QUESTIONS,
    BUDGET_QUESTIONS,
    CLUSTER_QUESTIONS,
    COPY_QUESTIONS,
    LOG_QUESTIONS,
    QUESTIONS,
    STORE_QUESTIONS,
    VPC_QUESTIONS,
)
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects.deployer import BOUNDARY_READS, COPY_READS, KEY_READS, SECRET_READS

CFN_LINT = Path(str(importlib.util.find_spec("cfnlint").origin)).parent  # pyright: ignore[reportOptionalMemberAccess]
KNOWN: dict[str, Any] = json.loads(
    (CFN_LINT / "data" / "AdditionalSpecs" / "Policies.json").read_text()
)
"""Service → its calls and the resources that each takes in a policy (Service Authorization
Reference, as cfn-lint has it)."""


def test_the_lists_are_those_of_the_installed_cfn_lint() -> None:
    assert permissions.FILE.read_text() == permissions.as_text(), (
        "python -m trainyard.catalog.aws.permissions > trainyard/catalog/aws/permissions.json"
    )


@pytest.mark.parametrize("kind", AWS_TYPES)
def test_every_type_is_created_read_and_deleted_with_some_call(kind: str) -> None:
    stays = kind == "aws:amp/workspaceConfiguration:WorkspaceConfiguration"  # with its workspace
    for handler in ("create", "read", *(() if stays else ("delete",))):
        assert permissions.actions([kind], [handler]), handler
    assert all(READS.match(action) for action in permissions.reads([kind]))


def test_every_call_is_one_that_iam_knows() -> None:
    needed = {*permissions.actions(AWS_TYPES), *QUESTIONS}
    unknown = {
        action
        for action in needed
        if action.partition(":")[2].lower() not in KNOWN[action.partition(":")[0]]["Actions"]
    }
    assert len(needed) > 150 and unknown == set()


def test_calls_that_are_added_by_hand_are_not_in_the_lists_already() -> None:
    """A type of AWS that several types of Pulumi share has its calls from one list."""
    doubled = [
        (kind, action)
        for kind, row in AWS_TYPES.items()
        for handler, added in row.calls_beside.items()
        for action in added.split()
        if action in permissions.HANDLED[row.cloudformation].get(handler, [])
    ]
    handlers = {each for row in AWS_TYPES.values() for each in (*row.calls, *row.calls_beside)}
    assert doubled == [] and handlers == set(HANDLERS)


def test_a_type_that_the_table_lacks_is_an_error() -> None:
    with pytest.raises(KeyError, match="Table"):
        permissions.actions(["aws:dynamodb/table:Table"])


def test_the_questions_are_those_that_a_live_check_asks() -> None:
    """Those about a boundary, copies, a key or a secret are allowed only where the stack names one, and of
    that one."""
    questions = CHECKOUT / "trainyard" / "live" / "questions"
    files = [
        questions / f"{name}.py" for name in ("account", "store_questions", "network_questions")
    ]
    source = "".join(file.read_text() for file in files)
    asked = set(re.findall(r'"([a-z0-9-]+:[A-Z]\w+)"', source)) - {"sts:GetCallerIdentity"}
    asked = {IAM_ACTIONS.get(call, call) for call in asked}
    of_stores = {ask for asks in STORE_QUESTIONS.values() for ask in asks}
    of_what_exists = {
        *of_stores,
        *BUCKET_QUESTIONS,
        *BUDGET_QUESTIONS,
        *CLUSTER_QUESTIONS,
        *LOG_QUESTIONS,
        *VPC_QUESTIONS,
        "fsx:DescribeBackups",
    }
    assert asked | {"eks:ListClusters"} == {
        *QUESTIONS,
        *BOUNDARY_READS,
        *COPY_QUESTIONS,
        *COPY_READS,
        *KEY_READS,
        *SECRET_READS,
        *of_what_exists,
    }
