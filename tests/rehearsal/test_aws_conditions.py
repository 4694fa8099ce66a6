"""Conditions of IAM statements in the embedded account."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.aws.conditions import holds
from rehearsal.aws.operations import NotBuilt

ARN = "arn:aws:eks:eu-west-1:123456789012:cluster/dev"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({}, True),
        ({"StringEquals": {"aws:SourceAccount": "123456789012"}}, True),
        ({"StringEquals": {"AWS:sourceaccount": "123456789012"}}, True),
        ({"StringEquals": {"aws:SourceAccount": ["1", "2"]}}, False),
        ({"ArnEquals": {"aws:SourceArn": ["arn:other", ARN]}}, True),
        ({"ArnLike": {"aws:SourceArn": "arn:aws:eks:*:123456789012:cluster/*"}}, True),
        ({"ArnEquals": {"aws:SourceArn": ARN}, "StringEquals": {"aws:SourceAccount": "1"}}, False),
        ({"StringEquals": {"sts:ExternalId": "x"}}, False),
        ({"StringEqualsIfExists": {"sts:ExternalId": "x"}}, True),
        ({"StringEqualsIfExists": {"aws:SourceAccount": "1"}}, False),
    ],
)
def test_a_statement_holds_where_all_its_conditions_are_met(
    condition: dict[str, Any], expected: bool
) -> None:
    request = {"aws:SourceAccount": "123456789012", "aws:SourceArn": ARN}
    assert holds({"Condition": condition}, request) is expected


def test_an_operator_that_is_not_built_is_not_passed_over() -> None:
    with pytest.raises(NotBuilt, match="NumericLessThan"):
        holds({"Condition": {"NumericLessThan": {"s3:max-keys": "10"}}}, {"s3:max-keys": "5"})
