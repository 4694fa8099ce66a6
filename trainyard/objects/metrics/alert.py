"""An alert of Prometheus: what fires, what it says, and the way out."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.plans.jobs import Spec


@dataclass(frozen=True, kw_only=True)
class Alert:
    """Something that somebody must know."""

    name: str
    severity: str
    """critical: money is lost now. warning: it will be. info: nothing is wrong."""
    expression: str
    minutes: int
    """For which it must hold."""
    says: str
    fix: str

    def rule(self) -> Spec:
        """As Prometheus reads it."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": f"{self.minutes}m",
            "labels": {"severity": self.severity},
            "annotations": {"summary": self.says, "fix": self.fix},
        }
