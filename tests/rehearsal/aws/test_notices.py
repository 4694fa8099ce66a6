"""Announcements of AWS reach the queue that Karpenter reads, by the rules of the stack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from components.nodes.karpenter import INTERRUPTIONS
from rehearsal.aws import notices
from rehearsal.aws.notices import NOTICES
from rehearsal.commands import faults
from tests.rehearsal.aws.test_capacity import BLOCK, after, reserve, targeting
from tests.rehearsal.aws.test_instances import Fleet
from tests.rehearsal.aws_world import Account, served


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def fleet(account: Account) -> Fleet:
    return Fleet(account)


@pytest.fixture
def queue(account: Account) -> str:
    """URL of a queue to which the rules of the stack send, and nothing else may."""
    sqs, events = account.client("sqs"), account.client("events")
    url = sqs.create_queue(QueueName="interruption")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    statements = []
    for name, (source, detail) in INTERRUPTIONS.items():
        if name == "state":
            continue
        pattern = json.dumps({"source": [source], "detail-type": [detail]})
        rule = events.put_rule(Name=name, EventPattern=pattern)["RuleArn"]
        events.put_targets(Rule=name, Targets=[{"Id": "karpenter", "Arn": arn}])
        statements.append(
            {
                "Effect": "Allow",
                "Principal": {"Service": "events.amazonaws.com"},
                "Action": "sqs:SendMessage",
                "Resource": arn,
                "Condition": {"ArnEquals": {"aws:SourceArn": [rule]}},
            }
        )
    policy = json.dumps({"Statement": statements})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    return url


def _announced(account: Account, queue: str) -> list[Any]:
    said = account.client("sqs").receive_message(QueueUrl=queue, MaxNumberOfMessages=10)
    return [json.loads(one["Body"]) for one in said.get("Messages", [])]


@pytest.mark.parametrize(
    ("notice", "lives"),
    [("spot", False), ("rebalance", True), ("reservation", False), ("health", True)],
)
def test_a_notice_is_in_the_queue_and_the_instance_ends_where_aws_ends_it(
    account: Account,
    fleet: Fleet,
    queue: str,
    notice: str,
    lives: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notices, "LEAST_SECONDS", 0)
    if notice == "reservation":
        reserve(account, BLOCK, block=True, starts=after(hours=-1), ends=after(hours=9))
        [id_], _ = fleet.launch(**targeting(BLOCK, block=True))
    else:
        [id_], _ = fleet.launch(spot=notice != "health")
    assert account.world("POST", f"instances/{id_}/notice", {"notice": notice})[0] == 200
    [event] = _announced(account, queue)
    assert (event["source"], event["detail-type"]) == INTERRUPTIONS[notice]
    assert id_ in json.dumps(event["detail"])
    assert (fleet.describe(id_)["State"]["Name"] != "terminated") is lives


@pytest.mark.parametrize("notice", ["spot", "rebalance", "reservation"])
def test_an_instance_that_was_not_bought_so_gets_no_such_notice(
    account: Account, fleet: Fleet, queue: str, notice: str
) -> None:
    [id_], _ = fleet.launch()
    status, answer = account.world("POST", f"instances/{id_}/notice", {"notice": notice})
    assert status == 404 and f"{id_} is on-demand" in answer["message"]
    assert _announced(account, queue) == []


def test_every_notice_has_a_rule_of_the_stack_and_a_word() -> None:
    told = {name: (one.source, one.detail_type) for name, one in NOTICES.items()}
    assert told.items() <= INTERRUPTIONS.items()
    assert {*faults.NOTICES} == NOTICES.keys() == INTERRUPTIONS.keys() - {"state"}
