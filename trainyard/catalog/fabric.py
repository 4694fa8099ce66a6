"""Speed of the network between GPU nodes, and the environment variables that help or harm there.

Sources: nccl-tests README of awsome-distributed-training (2025-09-26), two nodes unless said;
aws-ofi-nccl at 2daf7d3 (src/platform-aws.cpp, 2026-08-21), which sets NCCL's buffer, chunk and
protocol variables itself for each type; efa-cheatsheet.md of awsome-distributed-training
(2025-08-31); gnosia93/training-on-eks at 2a65a75 (2026-02-13), whose chapters c7-nccl and c7-network
contradict each other, and whose samples set NCCL_P2P_LEVEL=NVL on GPUs without NVLink.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from trainyard.catalog.aws.instances import InstanceType

P5_GB_PER_SECOND = 487
"""All-reduce bus bandwidth of two p5.48xlarge, at 16 GiB."""
_BY_COPIES = 3.0, "aws-ofi-nccl#547"
"""GB/s between nodes where NCCL copies through the host's memory, and the source."""
_UNKNOWN_TO_OFI = {"g7": (0.46, "two g7.48xlarge, 2026-09-10")}
"""Family that aws-ofi-nccl does not know → the share of its network that an all-reduce of 2 GiB reached, and
the source. g7 (a public record, aws-ofi-nccl 1.19.0): 39.8 GB/s with both EFA devices, 20.3 with one and half
of the GPUs. With the plugin's own choice, SENDRECV, one device carried 5.2 GB/s, and TCP 11.9."""


NETWORK_LAYERS: dict[str, int] = {
    **dict.fromkeys(("g6e", "g7e", "p4d", "p4de", "p5", "p5e", "p5en", "p6e-gb200"), 3),
    **dict.fromkeys(("p6-b200", "p6-b300"), 4),
}
"""Family → layers of the network that EC2 names above an instance (EC2 user guide,
ec2-instance-topology-prerequisites, read 2026-11-23), without types that it does not list."""
_NOT_LISTED = ("p5.4xlarge",)
LAYER = "topology.k8s.aws/network-node-layer-{}"
"""Label of a node with the name of its network node in a layer; 1 is the widest (EKS user guide,
ml-workload-topology)."""


def network_layers(instance_type: str) -> int:
    """Layers of the network that a node's labels name; 0 where EC2 does not say."""
    family = instance_type.partition(".")[0]
    return 0 if instance_type in _NOT_LISTED else NETWORK_LAYERS.get(family, 0)


def tcp_bound(kind: InstanceType) -> float:
    """GB/s that nodes can reach at most without EFA: a pod's one interface is on card 0."""
    return kind.card_gbps / 8


def slow(kind: InstanceType) -> str | None:
    """Reason why jobs of several nodes run slowly on the type; None where they do not, and for
    types without GPUs."""
    if not kind.gpus or kind.gpudirect:
        return None
    if not kind.efa:
        return (
            f"has no EFA: at most {tcp_bound(kind):.2g} GB/s between nodes where p5 reaches"
            f" {P5_GB_PER_SECOND}"
        )
    speed, source = _BY_COPIES
    if found := _UNKNOWN_TO_OFI.get(kind.family):
        share, source = found
        speed = kind.network_gbps / 8 * share
    return (
        f"has no GPUDirect RDMA: expect about {speed:.2g} GB/s between nodes where p5 reaches"
        f" {P5_GB_PER_SECOND} ({source})"
    )


def environment(kind: InstanceType, nodes: int) -> dict[str, str]:
    """Variables that a job on the type should set: few, since aws-ofi-nccl knows the rest by
    type."""
    if kind.family in ("g5", "g6") and kind.gpus > 1:
        return {
            "NCCL_SHM_USE_CUDA_MEMCPY": "1"
        }  # twice as fast through shared memory (efa-cheatsheet)
    if kind.family in _UNKNOWN_TO_OFI and kind.efa and nodes > 1:
        return {"OFI_NCCL_PROTOCOL": "RDMA"}  # else slower than TCP
    return {}


def _always(kind: InstanceType) -> bool:
    return True


def _has_efa(kind: InstanceType) -> bool:
    return kind.efa > 0


def _has_efa_without_reads(kind: InstanceType) -> bool:
    """True of EFA v1 without RDMA read: of ours g5. All of Nitro v4 and later can read, and p4d (EC2 user guide,
    efa, supported instance types)."""
    return _has_efa(kind) and kind.family == "g5"


INTERFACES = ("eth0", "lo")
"""Network interfaces of a pod, as the VPC CNI names them. An EFA device is none."""


def _finds_an_interface(value: str) -> bool:
    """True where a list of interfaces leads NCCL to the one of a pod: names are beginnings, = stands
    before whole names, ^ before those that are left out (NCCL user guide, NCCL_SOCKET_IFNAME)."""
    names = [each.strip() for each in value.lstrip("^=").split(",")]
    whole = value.lstrip("^").startswith("=")
    left = [
        each
        for each in INTERFACES
        if any(each == name if whole else each.startswith(name) for name in names if name)
    ]
    return INTERFACES[0] not in left if value.startswith("^") else bool(left or not any(names))


def _is_an_interface(value: str) -> bool:
    return not value or bool({*INTERFACES} & {*re.split(r"[,: ]", value)})


def _is_an_efa_device(value: str) -> bool:
    """True where a list names an EFA device, as rdma-core does: rdmap113s0 by its place, efa_0 by its number
    (linux-rdma/rdma-core, kernel-boot, rdma-persistent-naming)."""
    return any(each.startswith(("rdmap", "efa")) for each in re.split(r"[,: ]", value))


def _is_left_in(value: str) -> bool:
    """True where a list of interfaces to leave out leaves the one of a pod."""
    return INTERFACES[0] not in value.split(",")


def _is_a_network(value: str) -> bool:
    """True where one of a list is an interface of a pod, or a range of addresses."""
    return _is_an_interface(value) or "/" in value


@dataclass(frozen=True, kw_only=True)
class Harm:
    """A variable that does harm or nothing."""

    variable: str
    """Its name; with a * at the end, how names begin."""
    reason: str
    """As an error says it, behind "must"; of a variable without effect, as a warning says it. {such} stands for
    the type of the nodes."""
    values: tuple[str, ...] = ()
    """Values that the rule applies to. Empty: all values."""
    but: tuple[str, ...] = ()
    """Values that are fine."""
    fits: Callable[[str], bool] | None = None
    """True for values that are fine, where no list can name them."""
    fits_devices: Callable[[str], bool] | None = None
    """True for values that are fine in a pod with EFA devices."""
    on: Callable[[InstanceType], bool] = field(default=_always)
    of_node: bool = False
    """The values that harm are right in a pod with the network of its node (hostNetwork)."""

    @property
    def has_no_effect(self) -> bool:
        """It does nothing; the others slow the job down."""
        return not self.values and not self.but and self.fits is None

    def rule(self, kind: InstanceType | None) -> str:
        """The reason for nodes of this type, where it is known."""
        return self.reason.replace("{such}", f", such as {kind.name}" if kind else "")

    def rule_in_script(self, name: str, kind: InstanceType | None) -> str:
        """The rule as a script meets it, which has many variables. `name`: of the variable."""
        rule = self.rule(kind)
        verb = next(each for each in _IN_SCRIPT if rule.startswith(each))
        return f"{_IN_SCRIPT[verb].format(name)} {rule.removeprefix(verb)}"


_IN_SCRIPT = {
    "not be ": "not set {} to",
    "be ": "set {} to",
    "name an interface ": "name in {} an interface",
}
"""Beginning of the reason of a variable that does harm → the same with the name of the variable in it."""
_NO_INTERFACE = (
    f"name an interface that pods have, which is {INTERFACES[0]}: others are of the node, and the ranks end"
    " at their start"
)
HARMS: tuple[Harm, ...] = (
    Harm(
        variable="NCCL_P2P_LEVEL",
        values=("NVL",),
        on=lambda kind: not kind.nvlink,
        reason="not be NVL on nodes without NVLink{such}: NCCL then takes shared memory where it could take PCIe",
    ),
    Harm(
        variable="NCCL_P2P_DISABLE",
        values=("1",),
        on=lambda kind: kind.nvlink,
        reason="not be 1 on nodes with NVLink{such}: it turns NVLink off",
    ),
    Harm(
        variable="NCCL_NET",
        values=("Socket",),
        on=_has_efa,
        reason="not be Socket with EFA: it means TCP",
    ),
    Harm(
        variable="NCCL_NET",
        values=("IB",),
        reason="not be IB: EFA is no InfiniBand, and NCCL ends where it finds no device of it",
    ),
    Harm(
        variable="NCCL_NET_PLUGIN",
        values=("none",),
        on=_has_efa,
        reason="not be none with EFA: it means TCP",
    ),
    Harm(variable="NCCL_IB_*", reason="is of InfiniBand, which EFA is not: it does nothing"),
    Harm(
        variable="NCCL_NETWORK_TIMEOUT",
        reason=(
            "is no variable of NCCL: it does nothing, and a hang is noticed after"
            " the timeout of torch.distributed.init_process_group"
        ),
    ),
    Harm(variable="FI_EFA_SET_DEFAULT_GDR", reason="is no variable of libfabric: it does nothing"),
    Harm(
        variable="NCCL_SOCKET_NTHREADS", on=_has_efa, reason="is of TCP: it does nothing with EFA"
    ),
    Harm(
        variable="NCCL_NSOCKS_PERTHREAD", on=_has_efa, reason="is of TCP: it does nothing with EFA"
    ),
    Harm(
        variable="FI_PROVIDER",
        but=("efa",),
        on=_has_efa,
        reason="be efa, which aws-ofi-nccl chooses by itself: with another provider NCCL does not use EFA",
    ),
    Harm(
        variable="FI_EFA_USE_DEVICE_RDMA",
        values=("1", "true", "yes", "on"),
        on=_has_efa_without_reads,
        reason="not be 1 on nodes whose EFA has no RDMA read{such}: libfabric aborts",
    ),
    Harm(
        variable="RDMAV_*",
        reason="is of rdma-core, not of libfabric: with new kernels it can break forks",
    ),
    Harm(
        variable="NCCL_SOCKET_IFNAME", fits=_finds_an_interface, reason=_NO_INTERFACE, of_node=True
    ),
    *(
        Harm(variable=name, fits=_is_an_interface, reason=_NO_INTERFACE, of_node=True)
        for name in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE")
    ),
    *(
        Harm(
            variable=f"OMPI_MCA_{part}_tcp_if_{which}",
            fits=fits,
            reason=_NO_INTERFACE,
            of_node=True,
        )
        for part in ("btl", "oob")
        for which, fits in (("include", _is_a_network), ("exclude", _is_left_in))
    ),
    Harm(
        variable="UCX_NET_DEVICES",
        but=("all",),
        fits=_is_an_interface,
        fits_devices=_is_an_efa_device,  # by its transport SRD (openucx/ucx 1.19, src/uct/ib/efa)
        reason="name an interface that pods have, which is eth0, or an EFA device of the pod, such as"
        " rdmap113s0:1: mlx5 is of InfiniBand, and other interfaces are of the node",
        of_node=True,
    ),
)
"""Variables that jobs set in vain or to their harm."""


def harm(variable: str, value: str, kind: InstanceType, *, has_devices: bool = True) -> Harm | None:
    """The fault of this value of the variable on the type; None where it has none. `has_devices`:
    the pod has EFA devices, without which TCP is all there is."""
    devices = has_devices and _has_efa(kind)
    for each in HARMS:
        name = each.variable
        meant = variable.startswith(name[:-1]) if name.endswith("*") else variable == name
        if (
            meant
            and (not each.values or value in each.values)
            and value not in each.but
            and not (each.fits and each.fits(value))
            and not (devices and each.fits_devices and each.fits_devices(value))
            and each.on(kind)
            and (has_devices or each.on not in (_has_efa, _has_efa_without_reads))
        ):
            return each
    return None
