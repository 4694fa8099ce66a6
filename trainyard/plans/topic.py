"""Plan of a topic of SNS to which a part of an environment publishes: an existing topic, or one that the
environment makes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TopicPlan:
    """A topic of SNS to which messages are published."""

    name: str
    """Name of the topic that the environment makes where `arn` is None."""
    arn: str | None
    """ARN of an existing topic; None: the environment makes one."""
    emails: tuple[str, ...]
    """E-mail addresses that the environment subscribes to its own topic."""

    @property
    def own(self) -> bool:
        """True for a topic that the environment makes."""
        return self.arn is None

    def __str__(self) -> str:
        readers = f", with {', '.join(self.emails)}" if self.emails else ""
        return f"{self.arn or f'the topic {self.name}'}{readers}"
