"""The faults of test_repair_world.py: how each is planted, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass

Words = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that goes wrong under a gang, and what must come of it."""

    breaks: Words = ()
    """What breaks on an instance of the gang: `fault break --what …`."""
    once: Words = ()
    """Without `breaks`: a fault of the whole world."""
    before: tuple[Words, ...] = ()
    """Faults of the account that come first."""
    notice: str = ""
    """In place of `breaks`: what AWS announces of the instance."""
    everywhere: bool = False
    """On all nodes of the gang, not on that of its last rank."""
    says: Words = ()
    """What `make status` must say while it lasts."""
    mends: Words = ()
    """What of `fault break --what …` ends it, on every node of the gangs."""
    mended: tuple[Words, ...] = ()
    """Faults that end it, in the account."""
    reason: str = ""
    """Why the program has replaced the node; empty: it leaves nodes alone."""
    leaves: bool = False
    """Somebody else replaces the node."""
    restarts: bool = True
    """Whether all ranks start anew."""
    restarts_after: float = 0
    """Seconds before which a start is not the last one."""

    def words(self, instance: str, breaks: Words = ()) -> Words:
        """Of the command `fault`."""
        if self.notice:
            return ("notice", "--instance", instance, "--notice", self.notice)
        return ("break", "--instance", instance, "--what", *(breaks or self.breaks))


FAULTS: dict[str, Fault] = {
    "xid 79": Fault(breaks=("xid", "--xid", "79"), reason="NvidiaXID79Error"),
    "xid 74": Fault(breaks=("xid", "--xid", "74"), reason="NvidiaXID74Error"),
    "xid 48": Fault(breaks=("xid", "--xid", "48"), reason="NvidiaXID48Error"),
    "node lost": Fault(breaks=("node-lost",), reason="KubeletSilent"),
    "kubelet dead": Fault(breaks=("kubelet-dead",), reason="KubeletSilent"),
    "rank killed": Fault(breaks=("rank-killed",)),
    "rank hung": Fault(breaks=("rank-hung",)),
}
