"""Connections of a team's pods, both ways: the NetworkPolicy of a team's namespace.

It is enforced by the policy engine of the VPC CNI, which the environment turns on with its first
team. The engine judges a packet at the pod's own interface, before kube-proxy replaces a Service's
address (amazon-network-policy-controller-k8s, pkg/resolvers/endpoints.go). So the API server is
named by the address of its Service, and no other Service can be reached. Mounts are traffic of the
node and are not judged: the ports of Lustre and EFS stay closed to pods. EFA is not IP and is not
judged either.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from trainyard.plans import push_gateway as push

HTTPS, HTTP, DNS = 443, 80, 53
POD_IDENTITY = "169.254.170.23/32"
"""Where the agent of EKS Pod Identity listens on every node (EKS user guide, pod-id-agent-setup)."""
ANYWHERE = "0.0.0.0/0"
RESOLVER = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}
"""The pods of CoreDNS, as its EKS add-on labels them. The Service kube-dns has the same selector,
so the engine admits the Service's address, too."""

RESOLVES = {
    "to": [RESOLVER],
    "ports": [{"protocol": protocol, "port": DNS} for protocol in ("UDP", "TCP")],
}
"""Names are found."""
PUSHED_TO = {
    "to": [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": push.NAMESPACE}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": push.APP}},
        }
    ],
    "ports": [{"protocol": "TCP", "port": push.PORT}],
}
"""The pods of the Pushgateway; its Service has the same selector."""


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """The ranges in which a team's pods reach pods of their own team only."""

    vpc: tuple[str, ...]
    """CIDRs of the VPC: nodes, other pods, file systems."""
    services: str
    """CIDR of the cluster's Services, of which the API server has the first address."""


def policy_spec(ranges: Ranges, *, pod_identity: bool, pushes: bool = False) -> Any:
    """The spec of the NetworkPolicy. It selects all pods of its namespace, in both directions: what
    it does not name is refused. `pod_identity`: the pods have an AWS identity, whose credentials
    they ask their node for. `pushes`: there is a Pushgateway."""
    own = {"podSelector": {}}
    api_server = f"{ip_network(ranges.services)[1]}/32"
    outside = {"cidr": ANYWHERE, "except": [*ranges.vpc, ranges.services]}
    agent = {
        "to": [{"ipBlock": {"cidr": POD_IDENTITY}}],
        "ports": [{"protocol": "TCP", "port": HTTP}],
    }
    return {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [own]}],
        "egress": [
            {"to": [own]},
            RESOLVES,
            {
                "to": [{"ipBlock": {"cidr": api_server}}, {"ipBlock": outside}],
                "ports": [{"protocol": "TCP", "port": HTTPS}],
            },
            *([agent] if pod_identity else []),
            *([PUSHED_TO] if pushes else []),
        ],
    }
