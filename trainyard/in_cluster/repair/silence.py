"""Which nodes are silent, and which of them are dead: pure. What else makes a node sick: sickness.py.

A kubelet's lease says that it lives. A lease that nobody renews says less: the kubelet's connection to
one API server may be dead, and a client of Kubernetes notices that after 45 s only. So EC2 is asked, and
nodes that fall silent together are waited for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

REASON = "KubeletSilent"


@dataclass(frozen=True)
class Word:
    """What EC2 says of one instance."""

    works: bool
    words: str


@dataclass(frozen=True)
class Limits:
    """What trainyard/objects/programs/repair.py writes, in seconds of silence."""

    ask: float
    """From then on EC2 is asked, and its bad word is believed."""
    silent: float
    """Before, a kubelet may not have noticed that its connection is dead."""
    patience: float
    """For how long a node is waited for whose instance works, or that fell silent with others."""
    together: float
    """Nodes that fell silent within so many seconds have one cause."""


@dataclass(frozen=True)
class Silence:
    """What is to be done about a silent node."""

    message: str
    waits: str = ""
    """Why it is waited for; empty: it is dead."""


@dataclass
class Sight:
    """What it has seen of leases with its own eyes and its own clock: no clock of a node counts, and
    an API server that was away makes nobody dead."""

    blind_seconds: float
    together_seconds: float
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    _together: set[str] = field(default_factory=set)
    _looked: float = -math.inf

    def look(self, leases: Mapping[str, str], now: float) -> None:
        """`leases`: node → renewTime."""
        if now - self._looked > self.blind_seconds:
            self._seen, self._together = {}, set()
        self._looked = now
        old = self._seen
        self._seen = {
            name: old[name] if name in old and old[name][0] == renewed else (renewed, now)
            for name, renewed in leases.items()
        }

    def quiet(self, node: str, now: float) -> float:
        """Seconds since its lease was last seen to change; 0 without a lease."""
        return now - self._seen[node][1] if node in self._seen else 0.0

    def together(self, silent: Mapping[str, float]) -> set[str]:
        """Which nodes fell silent with others. They stay so until they speak, even where the others
        speak sooner. `silent`: node → seconds."""
        found = {
            node
            for node, seconds in silent.items()
            if any(
                other != node and abs(seconds - more) <= self.together_seconds
                for other, more in silent.items()
            )
        }
        self._together = found | (self._together & silent.keys())
        return self._together


def silence(quiet: float, *, together: bool, word: Word | None, limits: Limits) -> Silence | None:
    """What a node's silence means, if anything. `together`: whether it fell silent with others.
    `word`: what EC2 says of its instance; None: nothing."""
    if word and not word.works and quiet > limits.ask:
        return Silence(f"its kubelet says nothing, and {word.words}")
    if quiet <= limits.silent:
        return None
    if quiet > limits.patience:
        return Silence(f"its kubelet has said nothing for {limits.patience:.0f} seconds")
    message = f"its kubelet has said nothing for {limits.silent:.0f} seconds"
    reasons = [
        *([word.words] if word else []),
        *(["other nodes fell silent at the same time"] if together else []),
    ]
    if reasons:
        return Silence(message, waits=", and ".join(reasons))
    return Silence(f"{message}, and EC2 says nothing of its instance")
