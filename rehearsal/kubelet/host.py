"""Questions of pods and volumes to their node. kubelet.py has the one class that answers; its pods
do not import it."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from rehearsal import paths
from rehearsal.kube import Api, Object
from rehearsal.kubelet.aws import Account


class Host(Protocol):
    """The node of a pod."""

    api: Api
    """Speaks with the node's rights."""
    account: Account
    world: paths.World
    address: str

    @property
    def id(self) -> str:
        """The instance's."""
        ...

    @property
    def zone(self) -> str:
        """The name of its availability zone."""
        ...

    @property
    def folder(self) -> Path:
        """Where the node keeps its files, on this machine."""
        ...

    @property
    def allocatable(self) -> dict[str, str]:
        """Resources that pods may use: name to quantity."""
        ...

    def pull(self, image: str) -> None:
        """NotReady where the image cannot be had."""
        ...

    def unreached(self, port: int) -> str:
        """Obstacle between the API server and a port of the node; empty where none is."""
        ...

    def names_pods(self, namespace: str, service: str) -> bool:
        """True where DNS works, and knows pods by this headless service."""
        ...

    def services(self, namespace: str) -> list[Object]:
        """The services that a pod of a namespace can serve, where DNS and kube-proxy work."""
        ...

    def log(self, line: str) -> None:
        """One line in the kubelet's log."""
        ...

    def has_daemon(self, image: str) -> bool:
        """True where a DaemonSet's pod of this image runs on the node."""
        ...

    def daemon(self, image: str) -> Object | None:
        """The DaemonSet's pod of this image that runs on the node."""
        ...

    def as_pod(self, pod: Object) -> Api:
        """The API server, as a pod of the node asks it."""
        ...

    def pod_identity(self, pod: Object) -> dict[str, str]:
        """Credentials that Pod Identity gives a pod, by environment variable; none without an
        association."""
        ...
