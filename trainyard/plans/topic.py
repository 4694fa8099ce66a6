"""A topic of SNS that something of an environment publishes to: one that exists, or one that the
environment makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TopicPlan:
    """Where messages are published."""

    name: str
    """Name of the topic that the environment makes where `arn` is None."""
    arn: str | None
    """ARN of the topic that exists; None: the environment makes one."""
    emails: tuple[str, ...]
    """E-mail addresses that the environment subscribes to its own topic."""

    @property
    def own(self) -> bool:
        """Whether the environment makes it."""
        return self.arn is None

    def __str__(self) -> str:
        readers = f", with {', '.join(self.emails)}" if self.emails else ""
        return f"{self.arn or f'the topic {self.name}'}{readers}"
