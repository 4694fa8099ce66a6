"""Settings of messages about runs. What follows from them: trainyard/parts/told.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import pydantic


@dataclass(frozen=True, kw_only=True)
class ToldConfig:
    """One message when a run is complete, has failed, was deleted, stands still or does not start on its nodes:
    with the last words of the rank that failed, its node, the cost so far and the next command. Write either
    `emails` or `topic_arn`."""

    emails: Annotated[tuple[str, ...], pydantic.Field(max_length=10)] = ()
    """E-mail addresses that the environment subscribes to an SNS topic of its own. AWS asks each one to
    confirm, once."""
    topic_arn: str | None = None
    """ARN of an existing SNS topic, in the region of the stack. A FIFO topic drops second copies within 5
    minutes. A key of yours that encrypts the topic must let the role of the program use it."""
    hung_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] | None = None
    """After so many minutes without a log line of any rank, while all its pods run, a run stands still. By
    default 15, or one less than `repair.hung_minutes` where that is smaller: repair ends the pods then.
    A bar of progress is no line before it has drawn 16 KiB, about 250 steps."""

    EXAMPLES: ClassVar[Mapping[str, Any]] = {"told": {"emails": ["gpu-oncall@example.com"]}}
    OTHERS: ClassVar[Mapping[str, Any]] = {
        "told": {"emails": ["other@example.com"]},
        "told.emails": ["other@example.com"],
    }
