"""Parts of the control plane: four programs, their flags and configuration files.

EKS's choices are kept where they can be seen from outside: admission plugins, authorizers,
anonymous access to health only, tokens checked by the account. Flags are the defaults of Kubernetes
unless a comment says why not.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal import paths

_ETCD = "http://127.0.0.1:2379"


@dataclass(kw_only=True)
class Part:
    """One program of the control plane, and its process."""

    name: str
    flags: dict[str, Any]
    health: str
    """Answers 200 when the part works."""
    kubernetes: str = ""
    """Minor version of its program; none of etcd."""
    after: Part | None = None
    """The part that must work first: others give up or back off for seconds where it does not."""
    process: subprocess.Popen[bytes] | None = None
    healthy: bool = False
    ends: bool = False
    """True where the part's process shall end, so that another program takes its place."""
    rests: float = 0.0
    """Seconds between that end and the next start."""
    not_before: float = 0.0
    """time.monotonic() of the next start."""

    @property
    def command(self) -> list[str]:
        # setpriv: no part outlives the process that started it, not even after SIGKILL
        return [
            "setpriv",
            "--pdeathsig",
            "KILL",
            str(paths.BIN / (f"{self.name}-{self.kubernetes}" if self.kubernetes else self.name)),
            *(f"--{name}={value}" for name, value in self.flags.items()),
        ]

    @property
    def log(self) -> Path:
        return paths.LOGS / f"{self.name}.log"


def parts(world: paths.World, service_cidr: str, version: str) -> list[Part]:
    """In the order they start. `version`: minor version of Kubernetes."""
    etcd = _etcd()
    server = _api_server(world, service_cidr, after=etcd)
    every = [etcd, server, _controller_manager(after=server), _scheduler(after=server)]
    for part in every[1:]:
        part.kubernetes = version
    return every


def _etcd() -> Part:
    return Part(
        name="etcd",
        health=f"{_ETCD}/health",
        flags={
            "data-dir": paths.PLANE / "etcd",
            "listen-client-urls": _ETCD,
            "advertise-client-urls": _ETCD,
            "log-level": "warn",
            "quota-backend-bytes": 2 * 1024**3,
            # One member: it elects itself sooner, and a crash of the machine may cost the rehearsal
            # its data.
            "heartbeat-interval": 20,
            "election-timeout": 200,
            "unsafe-no-fsync": "true",
        },
    )


def _api_server(world: paths.World, service_cidr: str, *, after: Part) -> Part:
    pki = paths.PLANE
    return Part(
        name="kube-apiserver",
        health=f"{world.api_url}/readyz",
        after=after,
        flags={
            "etcd-servers": _ETCD,
            "bind-address": "0.0.0.0",
            "advertise-address": paths.BRIDGE,
            "secure-port": world.api_port,
            "service-cluster-ip-range": service_cidr,
            **_certificate(pki),
            "client-ca-file": pki / "ca.crt",
            "authentication-config": pki / "authentication.json",
            "authentication-token-webhook-config-file": pki / "token-review.json",
            "authentication-token-webhook-version": "v1",
            "authentication-token-webhook-cache-ttl": "5s",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": pki / "sa.pub",
            "service-account-signing-key-file": pki / "sa.key",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction,ExtendedResourceToleration",
            "allow-privileged": "true",
            "kubelet-client-certificate": pki / "kubelet-client.crt",
            "kubelet-client-key": pki / "kubelet-client.key",
            "kubelet-preferred-address-types": "InternalIP",
            # Who asks an API server of an APIService, such as Kueue's, through this one.
            "requestheader-client-ca-file": pki / "ca.crt",
            "requestheader-allowed-names": "front-proxy",
            "requestheader-username-headers": "X-Remote-User",
            "requestheader-group-headers": "X-Remote-Group",
            "requestheader-extra-headers-prefix": "X-Remote-Extra-",
            "proxy-client-cert-file": pki / "front-proxy.crt",
            "proxy-client-key-file": pki / "front-proxy.key",
            # Webhooks are called at the pod behind the service, so that nothing has to play
            # kube-proxy; pods reach the API server by KUBERNETES_SERVICE_HOST, so that the service
            # `kubernetes` needs no endpoint.
            "enable-aggregator-routing": "true",
            "endpoint-reconciler-type": "none",
            # Two cores serve everything: no fairness to compute, no wait before it stops.
            "enable-priority-and-fairness": "false",
            "max-requests-inflight": 2000,
            "max-mutating-requests-inflight": 1000,
            "shutdown-delay-duration": "0s",
            "profiling": "false",
        },
    )


def _controller_manager(*, after: Part) -> Part:
    pki = paths.PLANE
    return Part(
        name="kube-controller-manager",
        health="https://127.0.0.1:10257/healthz",
        after=after,
        flags={
            "kubeconfig": pki / "kube-controller-manager.kubeconfig",
            "use-service-account-credentials": "true",
            "root-ca-file": pki / "ca.crt",
            "service-account-private-key-file": pki / "sa.key",
            "leader-elect": "false",
            "kube-api-qps": 500,
            "kube-api-burst": 1000,
            "profiling": "false",
            # A claim finds its volume by an event; the period is only the retry, 15 s by default.
            "pvclaimbinder-sync-period": "5s",
            "bind-address": "127.0.0.1",
            "secure-port": 10257,
            **_certificate(pki),
        },
    )


def _scheduler(*, after: Part) -> Part:
    pki = paths.PLANE
    return Part(
        name="kube-scheduler",
        health="https://127.0.0.1:10259/readyz",
        after=after,
        flags={
            "config": pki / "scheduler.json",
            "bind-address": "127.0.0.1",
            "secure-port": 10259,
            **_certificate(pki),
        },
    )


def _certificate(pki: Path) -> dict[str, Path]:
    """The API server's, which names 127.0.0.1: the others serve their health under it."""
    return {"tls-cert-file": pki / "apiserver.crt", "tls-private-key-file": pki / "apiserver.key"}


def write_configuration(world: paths.World) -> None:
    """The files the flags name."""
    anonymous = {
        "enabled": True,
        "conditions": [{"path": path} for path in ("/healthz", "/livez", "/readyz")],
    }
    _write(
        "authentication.json",
        "apiserver.config.k8s.io/v1",
        "AuthenticationConfiguration",
        anonymous=anonymous,
    )
    account = f"{world.account_url}/_world/token-review"
    _write(
        "token-review.json",
        "v1",
        "Config",
        **{"current-context": "account"},
        clusters=[{"name": "account", "cluster": {"server": account}}],
        users=[{"name": "apiserver", "user": {}}],
        contexts=[{"name": "account", "context": {"cluster": "account", "user": "apiserver"}}],
    )
    client = {
        "kubeconfig": str(paths.PLANE / "kube-scheduler.kubeconfig"),
        "qps": 500,
        "burst": 1000,
    }
    _write(
        "scheduler.json",
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
        leaderElection={"leaderElect": False},
        podMaxBackoffSeconds=2,
        clientConnection=client,
    )


def _write(file: str, api_version: str, kind: str, **fields: Any) -> None:
    (paths.PLANE / file).write_text(json.dumps({"apiVersion": api_version, "kind": kind, **fields}))
