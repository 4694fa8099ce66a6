"""A fixture: a Kubernetes API server on loopback with its controllers, but no nodes and no world.

A test module uses it with pytest_plugins = ("tests.rehearsal.api_server",).
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import paths
from rehearsal.control_plane import pki
from rehearsal.kube import Api, ApiError, Object
from rehearsal.toolchain.programs import DEFAULT_KUBERNETES
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from trainyard.objects.queues.queues import MANAGERS

API_SERVER, MANAGER = (
    f"{name}-{DEFAULT_KUBERNETES}" for name in ("kube-apiserver", "kube-controller-manager")
)
PROGRAMS = ("etcd", API_SERVER, MANAGER)
SERVICES = "172.20.0.0/16"
TOKEN, MANAGERS_TOKEN = "let-me-in", "take-my-jobs"


@dataclass(frozen=True, kw_only=True)
class ApiServer:
    """A running API server; TOKEN is its administrator's, and MANAGERS_TOKEN that of an environment
    that hands its jobs to this one."""

    url: str
    authority: str
    admin: Api

    def until_listed(self, *lists: str) -> None:
        """Wait until lists with resourceVersion=0, as controllers read them, are as new as etcd's: the
        API server answers them from a cache that follows a write some milliseconds later."""
        for path in lists:
            until(lambda at=path: self._versions(f"{at}?resourceVersion=0") == self._versions(at))

    def _versions(self, path: str) -> dict[str, str]:
        items = self.admin.request("GET", path)["items"]
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in items}

    def kubeconfig(self, server: str = "", **user: Any) -> str:
        """The administrator's, or another user's, or another server's."""
        cluster = {"server": server or self.url, "certificate-authority": self.authority}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "it",
                "clusters": [{"name": "it", "cluster": cluster}],
                "users": [{"name": "it", "user": user or {"token": TOKEN}}],
                "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            }
        )


@pytest.fixture(scope="session")
def api_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    missing = [name for name in PROGRAMS if not (paths.BIN / name).exists()]
    if missing:
        pytest.skip(
            f"needs {', '.join(missing)} of the rehearsal's toolchain, which `make up` builds"
        )
    with ExitStack() as stack:
        yield start(stack, tmp_path_factory.mktemp("plane"))


def start(
    stack: ExitStack, folder: Path, *, crds: Sequence[Path] = (), controllers: bool = True
) -> ApiServer:
    """Both end with the stack. `crds`: files of kinds that are there before the controllers, which look
    for younger ones only every 30 s. `controllers`: with those of Kubernetes, which change what is
    there."""
    port, etcd, peers, manager = (free_port() for _ in range(4))
    url, authority = f"https://127.0.0.1:{port}", str(folder / "ca.crt")
    pki.write(folder, url, SERVICES)
    (folder / "tokens.csv").write_text(
        f"{TOKEN},admin,admin,system:masters\n{MANAGERS_TOKEN},manager,manager,{MANAGERS}\n"
    )
    _run(
        stack,
        folder,
        "etcd",
        data_dir=folder / "etcd",
        listen_client_urls=f"http://127.0.0.1:{etcd}",
        advertise_client_urls=f"http://127.0.0.1:{etcd}",
        listen_peer_urls=f"http://127.0.0.1:{peers}",
        unsafe_no_fsync="true",
    )
    _run(
        stack,
        folder,
        API_SERVER,
        etcd_servers=f"http://127.0.0.1:{etcd}",
        secure_port=port,
        bind_address="127.0.0.1",
        service_cluster_ip_range=SERVICES,
        token_auth_file=folder / "tokens.csv",
        authorization_mode="RBAC",
        client_ca_file=authority,
        endpoint_reconciler_type="none",
        tls_cert_file=folder / "apiserver.crt",
        tls_private_key_file=folder / "apiserver.key",
        service_account_issuer="https://kubernetes.default.svc",
        service_account_key_file=folder / "sa.pub",
        service_account_signing_key_file=folder / "sa.key",
        allow_privileged="true",  # as on EKS: Pod Security decides
        enable_priority_and_fairness="false",
    )
    admin = Api(url, ca_file=authority, token=lambda: TOKEN)
    _until_answering(admin)
    for made in [
        admin.apply(yaml.load(file.read_text(), yaml.CSafeLoader), manager="tests") for file in crds
    ]:
        until(lambda made=made: _served(admin, made))
    if controllers:
        _controllers(stack, folder, manager, authority)
    return ApiServer(url=url, authority=authority, admin=admin)


def _served(admin: Api, crd: Object) -> bool:
    """True when the API server has a place for objects of the kind."""
    spec = crd["spec"]
    try:
        answers = [
            admin.request("GET", f"/apis/{spec['group']}/{version['name']}")["resources"]
            for version in spec["versions"]
        ]
    except ApiError:  # of a group that is not there yet
        return False
    return all(spec["names"]["plural"] in [each["name"] for each in found] for found in answers)


def _controllers(stack: ExitStack, folder: Path, port: int, authority: str) -> None:
    _run(
        stack,
        folder,
        MANAGER,
        kubeconfig=folder / "kube-controller-manager.kubeconfig",
        leader_elect="false",
        secure_port=port,
        use_service_account_credentials="true",
        root_ca_file=authority,
        service_account_private_key_file=folder / "sa.key",
        kube_api_qps=500,
        kube_api_burst=1000,
        pvclaimbinder_sync_period="1s",
    )


def _run(stack: ExitStack, folder: Path, program: str, **flags: object) -> None:
    command = [
        str(paths.BIN / program),
        *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items()),
    ]
    log = stack.enter_context((folder / f"{program}.log").open("wb"))
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command], stdout=log, stderr=log)
    stack.callback(process.wait)
    stack.callback(
        process.kill
    )  # an API server that is asked to end waits a minute for its watches


def _until_answering(api: Api) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            api.text("/readyz")
            return
        except Exception:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
