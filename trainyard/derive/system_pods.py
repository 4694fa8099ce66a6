"""Pods that share the system nodes, and whether the nodes have CPU for all of them.

The scheduler counts requests alone: a pod that finds no node with its request stays Pending, and the update
waits for it until its time is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.catalog.aws.instances import allocatable_millicpus
from trainyard.catalog.upstream import cpu_requests
from trainyard.objects.queues import queues
from trainyard.parts.parts import wanted_parts
from trainyard.plans.controllers import KARPENTER_REPLICAS, KARPENTER_VCPUS
from trainyard.plans.system_nodes import SystemPod
from trainyard.settings.environment import EnvironmentConfig


def system_pods(wanted: EnvironmentConfig) -> list[SystemPod]:
    """The pods of an environment that may be on any system node, the largest first. Karpenter's have a node
    each. Those that request no CPU, such as the Trainer's, are left out, and so are pods that end, and CoreDNS of an
    existing cluster, which may be on nodes of its owner."""
    operator, counted = wanted.training_operator, wanted.queues
    resolvers = 0 if wanted.cluster.name else cpu_requests.COREDNS_REPLICAS
    pods = [
        SystemPod("JobSet", cpu_requests.JOBSET),
        *([SystemPod("CoreDNS", cpu_requests.COREDNS)] * resolvers),
        *([SystemPod("training-operator", cpu_requests.TRAINING_OPERATOR)] if operator else []),
        *([SystemPod("Kueue", cpu_requests.KUEUE)] * queues.REPLICAS if counted else []),
        *(pod for part, its in wanted_parts(wanted) for pod in part.system_pods(its, wanted)),
    ]
    return sorted(pods, key=lambda pod: -pod.millicpus)


def left_beside_karpenter(vcpus: int) -> int:
    """CPU that a system node with a replica of Karpenter has for other pods, in thousandths of a vCPU."""
    return allocatable_millicpus(vcpus) - cpu_requests.EACH_NODE - KARPENTER_VCPUS * 1000


def first_without_room(pods: Sequence[SystemPod], vcpus: int, nodes: int) -> SystemPod | None:
    """The first pod that no node has CPU for; None where all are placed. `pods`: the largest first, each of
    which goes to the first node that has its request."""
    beside, alone = left_beside_karpenter(vcpus), nodes - KARPENTER_REPLICAS
    left = [beside] * KARPENTER_REPLICAS + [beside + KARPENTER_VCPUS * 1000] * alone
    for pod in pods:
        place = next((node for node, free in enumerate(left) if free >= pod.millicpus), None)
        if place is None:
            return pod
        left[place] -= pod.millicpus
    return None
