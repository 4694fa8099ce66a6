"""What the control plane consists of: four programs, their flags and configuration files.

EKS's choices are kept where they can be seen from outside: admission plugins, authorizers, anonymous access to health
only, tokens checked by the account. Flags are the defaults of Kubernetes unless a comment says why not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.paths import BIN, BRIDGE, World

_ETCD = "http://127.0.0.1:2379"
_ETCD_PEER = "http://127.0.0.1:2380"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What the parts of one control plane must know."""

    world: World
    service_cidr: str
    pki: Path
    data: Path

    @property
    def api(self) -> str:
        return f"https://127.0.0.1:{self.world.api_port}"


@dataclass(frozen=True, kw_only=True)
class Part:
    """One program of the control plane."""

    name: str
    arguments: tuple[str, ...]
    health: str
    """Answers 200 when the part works."""
    after: str | None = None
    """The part that must work first: others give up or back off for seconds where it does not."""

    @property
    def command(self) -> list[str]:
        # setpriv: no part outlives the process that started it, not even after SIGKILL
        return ["setpriv", "--pdeathsig", "KILL", str(BIN / self.name), *self.arguments]


def parts(cluster: Cluster) -> tuple[Part, ...]:
    """In the order they start."""
    return tuple(make(cluster) for make in _MAKERS)


def write_configuration(cluster: Cluster) -> None:
    """The files the flags name."""
    anonymous = {"enabled": True, "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz")]}
    _write(cluster.pki / "authentication.json", "apiserver.config.k8s.io/v1", "AuthenticationConfiguration",
           anonymous=anonymous)
    account = f"http://127.0.0.1:{cluster.world.account_port}/_world/token-review"
    _write(cluster.pki / "token-review.json", "v1", "Config", **{"current-context": "account"},
           clusters=[{"name": "account", "cluster": {"server": account}}], users=[{"name": "apiserver", "user": {}}],
           contexts=[{"name": "account", "context": {"cluster": "account", "user": "apiserver"}}])
    _write(cluster.pki / "scheduler.json", "kubescheduler.config.k8s.io/v1", "KubeSchedulerConfiguration",
           leaderElection={"leaderElect": False}, podMaxBackoffSeconds=2,
           clientConnection={"kubeconfig": str(cluster.pki / "kube-scheduler.kubeconfig"), "qps": 500, "burst": 1000})


def _etcd(cluster: Cluster) -> Part:
    flags = {"name": "etcd", "data-dir": cluster.data, "listen-client-urls": _ETCD, "advertise-client-urls": _ETCD,
             "listen-peer-urls": _ETCD_PEER, "initial-advertise-peer-urls": _ETCD_PEER,
             "initial-cluster": f"etcd={_ETCD_PEER}", "quota-backend-bytes": 2 * 1024**3, "log-level": "warn",
             # One member: it elects itself sooner, and a crash of the machine may cost the rehearsal its data.
             "heartbeat-interval": 20, "election-timeout": 200, "unsafe-no-fsync": "true"}
    return Part(name="etcd", arguments=_arguments(flags), health=f"{_ETCD}/health")


def _apiserver(cluster: Cluster) -> Part:
    pki = cluster.pki
    flags = {
        "etcd-servers": _ETCD, "bind-address": "0.0.0.0", "advertise-address": BRIDGE,
        "secure-port": cluster.world.api_port, "service-cluster-ip-range": cluster.service_cidr,
        "tls-cert-file": pki / "apiserver.crt", "tls-private-key-file": pki / "apiserver.key",
        "client-ca-file": pki / "ca.crt", "authentication-config": pki / "authentication.json",
        "authentication-token-webhook-config-file": pki / "token-review.json",
        "authentication-token-webhook-version": "v1", "authentication-token-webhook-cache-ttl": "5s",
        "service-account-issuer": "https://kubernetes.default.svc", "service-account-key-file": pki / "sa.pub",
        "service-account-signing-key-file": pki / "sa.key", "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction,ExtendedResourceToleration", "allow-privileged": "true",
        "kubelet-client-certificate": pki / "kubelet-client.crt", "kubelet-client-key": pki / "kubelet-client.key",
        "kubelet-preferred-address-types": "InternalIP",
        # Webhooks are called at the pod behind the service, so that nothing has to play kube-proxy; pods reach the
        # API server by KUBERNETES_SERVICE_HOST, so that the service `kubernetes` needs no endpoint.
        "enable-aggregator-routing": "true", "endpoint-reconciler-type": "none",
        # Two cores serve everything: no fairness to compute, no wait before it stops.
        "enable-priority-and-fairness": "false", "max-requests-inflight": 2000, "max-mutating-requests-inflight": 1000,
        "shutdown-delay-duration": "0s", "profiling": "false",
    }
    return Part(name="kube-apiserver", arguments=_arguments(flags), health=f"{cluster.api}/readyz")


def _controller_manager(cluster: Cluster) -> Part:
    pki = cluster.pki
    flags = {"kubeconfig": pki / "kube-controller-manager.kubeconfig", "use-service-account-credentials": "true",
             "root-ca-file": pki / "ca.crt", "service-account-private-key-file": pki / "sa.key",
             "leader-elect": "false", "kube-api-qps": 500, "kube-api-burst": 1000, "profiling": "false",
             # A claim finds its volume by an event; the period is only the retry, 15 s by default.
             "pvclaimbinder-sync-period": "5s", **_serving(cluster, 10257)}
    return Part(name="kube-controller-manager", arguments=_arguments(flags), after="kube-apiserver",
                health="https://127.0.0.1:10257/healthz")


def _scheduler(cluster: Cluster) -> Part:
    flags = {"config": cluster.pki / "scheduler.json", **_serving(cluster, 10259)}
    return Part(name="kube-scheduler", arguments=_arguments(flags), after="kube-apiserver",
                health="https://127.0.0.1:10259/readyz")


_MAKERS: tuple[Callable[[Cluster], Part], ...] = (_etcd, _apiserver, _controller_manager, _scheduler)


def _serving(cluster: Cluster, port: int) -> dict[str, Any]:
    """Health on loopback, under the API server's certificate, which names 127.0.0.1."""
    return {"bind-address": "127.0.0.1", "secure-port": port, "tls-cert-file": cluster.pki / "apiserver.crt",
            "tls-private-key-file": cluster.pki / "apiserver.key"}


def _arguments(flags: dict[str, Any]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in flags.items())


def _write(file: Path, api_version: str, kind: str, **fields: Any) -> None:
    file.write_text(json.dumps({"apiVersion": api_version, "kind": kind, **fields}))
