from __future__ import annotations

import threading
from typing import Any

import pulumi
import pytest
from pulumi_aws import sqs

from stacks import pace
from tests.support.recording import record


def test_a_program_goes_on_once_the_engine_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "PATIENCE", 60)
    answers: list[str] = []
    seen: list[list[str]] = []

    def make(_: str, name: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        answers.append(name)
        return name, {}

    async def program() -> None:
        for name in ("first", "second"):
            await pace.answered(sqs.Queue(name))
            seen.append([*answers])

    record(lambda: pulumi.run(program), "dev", {}, maker=make)
    assert seen == [["first"], ["first", "second"]]


def test_a_program_does_not_wait_for_what_aws_takes_long_to_make(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "PATIENCE", 0.01)
    goes_on = threading.Event()

    def make(_: str, name: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        assert goes_on.wait(60), "the program waits for the resource"
        return name, {}

    async def program() -> None:
        await pace.answered(sqs.Queue("slow"))
        goes_on.set()

    graph = record(lambda: pulumi.run(program), "dev", {}, maker=make)
    assert [node.name for node in graph.of("Queue")] == ["slow"]


def test_a_resource_that_fails_ends_the_program_with_its_own_error() -> None:
    made: list[str] = []

    def make(_: str, name: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        raise RuntimeError("no queue today")

    async def program() -> None:
        await pace.answered(sqs.Queue("refused"))
        made.append("the rest")

    with pytest.raises(RuntimeError, match="no queue today"):
        record(lambda: pulumi.run(program), "dev", {}, maker=make)
    assert made == ["the rest"], "other resources are asked for, as without a pace"
