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
    """In place of `breaks`: what AWS announces of the instance, where that is possible."""
    everywhere: bool = False
    """On all nodes of the gang, not on that of its last rank."""
    says: Words = ()
    """What `trainyard status` must say while it lasts."""
    mends: str = ""
    """What of `fault break --what …` ends it, on every node of the gangs."""
    mended: tuple[Words, ...] = ()
    """Faults that end it, in the account."""
    reason: str = ""
    """Why the program has replaced the node; empty: it leaves nodes alone."""
    leaves: bool = False
    """Somebody else replaces the node."""
    restarts: bool = True
    """Whether all ranks start anew."""
    untouched: bool = False
    """Whether every rank must run on as it is."""
    lasts: float = 0
    """Seconds for which nobody can look."""
    by_hand: bool = False
    """Nothing replaces the node: the test does what `trainyard status` says."""

    @property
    def node_goes(self) -> bool:
        """Whether another node takes the place of the one that it hits."""
        return bool(self.reason or self.leaves or self.by_hand)

    def words(self, instance: str) -> Words:
        """Of the command `fault`, for an instance."""
        if self.notice:
            return ("notice", "--instance", instance, "--notice", self.notice)
        return ("break", "--instance", instance, "--what", *self.breaks)


CAPACITY = ("no-capacity", "--zone", "us-east-2a", "--count", "-1")
FAULTS: dict[str, Fault] = {
    "xid 79": Fault(breaks=("xid", "--xid", "79"), reason="NvidiaXID79Error"),
    "xid 74": Fault(breaks=("xid", "--xid", "74"), reason="NvidiaXID74Error"),
    "xid 48": Fault(breaks=("xid", "--xid", "48"), reason="NvidiaXID48Error"),
    "nvme gone": Fault(breaks=("nvme-gone",), reason="BlockDeviceIOError"),
    "node lost": Fault(breaks=("node-lost",), reason="KubeletSilent"),
    "kubelet dead": Fault(
        breaks=("kubelet-dead",),
        reason="KubeletSilent",
        says=("is silent", "waited for"),
        lasts=120,
    ),
    "half of the kubelets silent": Fault(
        breaks=("kubelet-silent", "--seconds", "45"), restarts=False, untouched=True, lasts=75
    ),
    "rank killed": Fault(breaks=("rank-killed",)),
    "rank out of memory": Fault(breaks=("rank-out-of-memory",)),
    "checkpoint damaged": Fault(breaks=("checkpoint-damaged",)),
    "node slow": Fault(
        breaks=("node-slow",), restarts=False, untouched=True, lasts=10, mends="mended"
    ),
    "file system full": Fault(
        breaks=("store-full",), everywhere=True, says=("a file system is full",), mends="mended"
    ),
    "file system away": Fault(
        breaks=("store-away",),
        everywhere=True,
        says=("seems to hang",),
        mends="mended",
        restarts=False,
    ),
    "rank hung": Fault(breaks=("rank-hung",), says=("seems to hang",)),
    "api server away": Fault(
        once=("api-away", "--seconds", "120"), restarts=False, untouched=True, lasts=125
    ),
    "efa down": Fault(
        breaks=("efa-down",),
        says=("keeps crashing", "EFA does not work", "has warned", "EFAErrorMetric"),
        by_hand=True,
    ),
    "no capacity": Fault(
        before=(CAPACITY,),
        breaks=("node-lost",),
        says=("capacity: AWS has no capacity",),
        mended=(("clear",),),
        reason="KubeletSilent",
    ),
    "xid 63": Fault(
        breaks=("xid", "--xid", "63"), says=("NvidiaXID63Error",), restarts=False, untouched=True
    ),
}
"""Name → fault. The last one leaves sick nodes until the runs end."""
SPOT = Fault(notice="spot", leaves=True)
RETIREMENT = Fault(
    notice="health", says=("leaves when its pods have ended", "AWS retires"), by_hand=True
)
"""EC2 announces it days before, and a static pool cannot be spot."""
