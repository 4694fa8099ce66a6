"""One request of the engine, as a plugin sees it: whose, how long, and how it waits."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rehearsal.providers.problems import Cancelled, Refused


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request of the engine about one resource."""

    urn: str
    id: str = ""
    preview: bool = False
    timeout: float = 0
    """Seconds of the resource's customTimeouts; 0 where the program gives none."""
    seed: bytes = b""
    """The engine's random seed for names, the same in preview and update."""
    ignored: tuple[str, ...] = ()
    """Property paths of ignoreChanges; the engine has put their old values into the new inputs
    already."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    report: Callable[[str], None] = lambda text: None
    """Show what is being waited for, in the resource's line of the display."""

    @property
    def type(self) -> str:
        return self.urn.split("::")[2].split("$")[-1]

    @property
    def name(self) -> str:
        return self.urn.split("::", 3)[3]

    def suffix(self, length: int = 7) -> str:
        """Random letters for a name, the same for the same seed."""
        return hashlib.sha256(self.seed or self.urn.encode()).hexdigest()[:length]

    def pause(self, seconds: float, why: str = "") -> None:
        """Sleep, but not through the user's interrupt."""
        if self.cancelled.wait(seconds):
            raise Cancelled(f"interrupted while waiting: {why}".removesuffix(": "))

    def until(
        self, done: Callable[[], Any], *, default: float, what: str, every: float = 0.25
    ) -> Any:
        """The first true answer of `done`, asked again and again; Refused after the timeout (or
        `default`) seconds."""
        seconds = self.timeout or default
        end = time.monotonic() + seconds
        while not (answer := done()):
            if time.monotonic() > end:
                raise Refused(f"timeout while waiting for {what} ({seconds:.0f} s)")
            self.pause(every, what)
        return answer
