"""Judges whether NetworkPolicies let a pod open a connection: their meaning as a function, after
the definition of NetworkPolicy in the Kubernetes API and after what the VPC CNI makes of Services
(amazon-network-policy-controller-k8s, pkg/resolvers/endpoints.go: a Service is judged by its own
address, and admitted by its selector).

The rehearsal's pods are processes on one bridge, where nothing enforces policies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import Any

from rehearsal.kube import Object

NAME = "kubernetes.io/metadata.name"
"""Label that the API server gives each namespace."""


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One end of a connection: a pod, a Service, or an address outside of the cluster."""

    address: str
    namespace: str = ""
    """Empty: it is outside of the cluster."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of a pod; of a Service its selector."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Resolves names and judges connections."""

    policies: Sequence[Object]
    endpoints: Mapping[str, Endpoint]
    """DNS name → where it leads. CoreDNS tells every pod every name."""

    def reaches(self, source: str, target: str, port: int, protocol: str = "TCP") -> bool:
        """True where a pod, by its name, can open a connection to a name or an address."""
        sender = self.endpoints[source]
        receiver = self.endpoints.get(target) or self._at(target)
        return self._lets(sender, receiver, "egress", port, protocol) and self._lets(
            receiver, sender, "ingress", port, protocol
        )

    def _at(self, address: str) -> Endpoint:
        known = (each for each in self.endpoints.values() if each.address == address)
        return next(known, Endpoint(address=address))

    def _lets(self, pod: Endpoint, peer: Endpoint, way: str, port: int, protocol: str) -> bool:
        """True where the policies of one end let the connection through in one direction."""
        bound = [
            each["spec"]
            for each in self.policies
            if pod.namespace == each["metadata"]["namespace"]
            and way.capitalize() in each["spec"]["policyTypes"]
            and _selects(each["spec"]["podSelector"], pod.labels)
        ]
        side = "to" if way == "egress" else "from"
        rules = [rule for spec in bound for rule in spec.get(way, [])]
        return not bound or any(
            _of_port(rule.get("ports", []), port, protocol)
            and any(_is(one, peer, pod.namespace) for one in rule[side])
            for rule in rules
        )


def _of_port(ports: Sequence[Mapping[str, Any]], port: int, protocol: str) -> bool:
    return not ports or {"protocol": protocol, "port": port} in ports


def _is(peer: Mapping[str, Any], end: Endpoint, namespace: str) -> bool:
    """`namespace`: of the policy."""
    if block := peer.get("ipBlock"):
        address = ip_address(end.address)
        inside = (address in ip_network(cidr) for cidr in block.get("except", ()))
        return address in ip_network(block["cidr"]) and not any(inside)
    spaces = peer.get("namespaceSelector", {"matchLabels": {NAME: namespace}})
    return bool(end.namespace) and all(
        (_selects(spaces, {NAME: end.namespace}), _selects(peer["podSelector"], end.labels))
    )


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    assert not selector.keys() - {"matchLabels"}, "matchExpressions are not implemented"
    return selector.get("matchLabels", {}).items() <= labels.items()
