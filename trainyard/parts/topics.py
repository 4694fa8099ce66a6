"""Topics of SNS that parts publish to: which settings cannot work, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.parts.emails import email_errors
from trainyard.plans.topic import TopicPlan
from trainyard.problems import REMOVE, InputError


def topic_errors(
    at: str, topic_arn: str | None, emails: tuple[str, ...], region: str, *, fifo: bool = False
) -> Iterator[InputError]:
    """Settings of a topic that nothing can be published to. `at`: path of the section that has
    `topic_arn` and `emails`. `fifo`: the publisher can publish to a FIFO topic, too."""
    yield from email_errors(f"{at}.emails", emails)
    if topic_arn is None:
        return
    if emails:
        yield InputError(
            path=f"{at}.emails",
            must="not be set beside topic_arn: the owner of a topic subscribes its readers",
            got=", ".join(emails),
            fix="delete emails, or delete topic_arn and the environment makes a topic",
            write=REMOVE,
        )
    name = r"[\w-]{1,251}(\.fifo)?" if fifo else r"[\w-]{1,256}"
    if not re.fullmatch(rf"arn:aws:sns:{region}:\d{{12}}:{name}", topic_arn):
        example = f"arn:aws:sns:{region}:123456789012:alerts"
        kind = "an SNS topic" if fifo else "a standard SNS topic"
        yield InputError(
            path=f"{at}.topic_arn",
            must=f"be the ARN of {kind} in {region}, where its publisher is",
            got=topic_arn,
            fix=f"write such as {example}",
            write=example,
        )


def topic_types(topic: TopicPlan) -> tuple[str, ...]:
    """The types of the resources that are made for a topic, as Pulumi's AWS provider calls them."""
    readers = ("aws:sns/topicSubscription:TopicSubscription",) if topic.emails else ()
    return ("aws:sns/topic:Topic", *readers) if topic.own else ()
