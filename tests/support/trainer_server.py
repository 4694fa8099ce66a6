"""A Kubernetes API server with the Trainer of one release and its JobSet: our own charts of CRDs,
the webhooks that upstream's charts configure, and both controllers as plain processes. No nodes:
pods are made and stay Pending.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from development import chart_objects
from rehearsal import charts, paths, processes
from rehearsal.kube import ApiError, Object
from tests.rehearsal.api_server import PROGRAMS, ApiServer, start
from tests.support.cases.trainer import OWN, runtime
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from trainyard.catalog.versions import TRAINERS
from trainyard.objects.jobs.own_runtimes import own_runtime
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.plans.jobs import Spec

CONTROLLERS = {"2.1.0": ("trainer", "jobset"), "2.3.0": ("trainer-2.3", "jobset-0.12")}
"""Trainer release → programs of the toolchain: the Trainer's controller, JobSet's."""
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
NOT_HEARD_OF = "must be created before the TrainJob is created"
NOT_SERVED = "404 page not found"
"""The API server says so of a group whose CRD it does not serve yet."""
_IMAGES = {"trainer": "trainer-controller-manager", "jobset": "jobset"}


class TrainerServer:
    """One API server; `install` puts a release on it, over another where one is there."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.folder, self.release, self._stack = folder, "", stack
        self.server: ApiServer = start(stack, folder)
        self.api = self.server.admin
        self._running: list[subprocess.Popen[bytes]] = []
        stack.callback(self.stop)
        (folder / "kubeconfig").write_text(self.server.kubeconfig())

    def install(self, release: str, patience: float = PATIENCE) -> None:
        """As components/jobs/trainer.py: first the CRDs, by Helm; then controllers, ready within so many
        seconds, and webhooks."""
        self.stop()
        self.release = release
        self.helm(
            "upgrade",
            "--install",
            "kubeflow-trainer-crds",
            str(chart_objects.OWN / f"kubeflow-trainer-crds-{release}"),
            "--namespace=kubeflow-system",
            "--create-namespace",
            "--take-ownership",
            "--wait",
        )
        rendered = self.helm(
            "template",
            "kubeflow-trainer",
            str(charts.ensure() / f"kubeflow-trainer-{release}"),
            "--namespace=kubeflow-system",
            "--kube-version=1.34.0",
            "--set=crds.enabled=false",
        )
        ports = {
            name: self._run(name, CONTROLLERS[release][number], patience)
            for number, name in enumerate(_IMAGES)
        }
        for config in filter(None, yaml.load_all(rendered, yaml.CSafeLoader)):
            if config["kind"] in WEBHOOKS:
                self.api.apply(self._to_localhost(config, ports), manager="tests")
        assert until(self._admits), "the API server does not reach the webhooks"

    def _admits(self) -> bool:
        """The API server hears a moment later where webhooks are now."""
        probe = runtime("probe", upstream_runtimes(self.release)["torch-distributed"][1])
        try:
            self.api.request("POST", f"{self.api.path(probe, collection=True)}?dryRun=All", probe)
        except ApiError as error:
            return "failed calling webhook" not in str(error)
        return True

    def stop(self) -> None:
        """End the controllers; their webhooks then refuse everything."""
        for process in self._running:
            process.kill()  # one that cannot read its objects does not listen to less
            process.wait()
        self._running.clear()

    @contextmanager
    def held(self) -> Iterator[None]:
        """The Trainer stands still, as one that hears late of everything."""
        controller = self._running[[*_IMAGES].index("trainer")]
        controller.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            controller.send_signal(signal.SIGCONT)

    def create(self, obj: Object) -> Object:
        """Object that is stored after a plain create, as the SDK and Kueue do it. The Trainer's
        webhook may not have heard of a runtime that was made a moment ago, nor the API server serve a CRD: both are
        asked again."""

        def stored() -> Object | None:
            try:
                return self.api.request("POST", self.api.path(obj, collection=True), obj)
            except ApiError as error:
                if NOT_HEARD_OF in str(error) or NOT_SERVED in str(error):
                    return None
                raise

        found = until(stored)
        assert found is not None
        return found

    def pods(self, job: str, count: int) -> list[Object]:
        """The pods of a TrainJob in the order of their names, once there are that many."""
        at = f"/api/v1/namespaces/default/pods?labelSelector=jobset.sigs.k8s.io%2Fjobset-name%3D{job}"
        assert until(lambda: len(self.api.request("GET", at)["items"]) >= count), (
            f"{count} pods of {job}"
        )
        return sorted(self.api.request("GET", at)["items"], key=lambda pod: pod["metadata"]["name"])

    def helm(self, *arguments: str) -> str:
        command = [
            str(paths.BIN / "helm"),
            *arguments,
            "--kubeconfig",
            str(self.folder / "kubeconfig"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _to_localhost(self, config: Object, ports: dict[str, int]) -> Object:
        authority = base64.b64encode(Path(self.server.authority).read_bytes()).decode()
        for webhook in config["webhooks"]:
            service = webhook["clientConfig"]["service"]
            port = ports["jobset" if service["name"].startswith("jobset") else "trainer"]
            webhook["clientConfig"] = {
                "url": f"https://127.0.0.1:{port}{service['path']}",
                "caBundle": authority,
            }
        return config

    def _run(self, name: str, program: str, patience: float) -> int:
        """Start a controller; the port of its webhooks. Somebody else may take a free port first:
        then another one."""
        for _ in range(3):
            port, health = free_port(), free_port()
            process = self._started(name, program, port, health)
            ready = processes.wait(
                lambda health=health, process=process: (
                    _answers(f"http://127.0.0.1:{health}/readyz") or process.poll() is not None
                ),
                patience,
            )
            assert ready, f"not ready: {self.folder / name / 'log'}"
            if process.poll() is None:
                return port
        raise AssertionError(f"ended three times: {self.folder / name / 'log'}")

    def _started(self, name: str, program: str, port: int, health: int) -> subprocess.Popen[bytes]:
        """A controller with the API server's certificate, which is one for 127.0.0.1; the Trainer
        looks for it below TMPDIR."""
        folder = self.folder / name
        certificates = folder / "k8s-webhook-server/serving-certs"
        certificates.mkdir(parents=True, exist_ok=True)
        for suffix, file in (("crt", "apiserver.crt"), ("key", "apiserver.key")):
            (certificates / f"tls.{suffix}").write_bytes((self.folder / file).read_bytes())
        webhook: dict[str, Any] = {"port": port, "host": "127.0.0.1"}
        own = {
            "trainer": {
                "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
                "webhook": webhook,
                "certManagement": {"enable": False},
            },
            "jobset": {
                "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
                "internalCertManagement": {"enable": False},
                "webhook": webhook | {"certDir": str(certificates)},
            },
        }[name]
        (folder / "config.yaml").write_text(
            json.dumps(
                own
                | {
                    "kind": "Configuration",
                    "leaderElection": {"leaderElect": False},
                    "metrics": {"bindAddress": "0"},
                    "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
                }
            )
        )
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            str(paths.BIN / program),
            f"--config={folder / 'config.yaml'}",
            f"--kubeconfig={self.folder / 'kubeconfig'}",
        ]
        log = self._stack.enter_context((folder / "log").open("ab"))
        process = subprocess.Popen(
            command, stdout=log, stderr=log, env=os.environ | {"TMPDIR": str(folder)}
        )
        self._running.append(process)
        return process


@contextmanager
def installed(release: str, folder: Path) -> Iterator[TrainerServer]:
    """A server with a release, upstream's runtimes and ours."""
    with trainer_server(folder) as server:
        server.install(release)
        for name, (framework, spec) in runtimes(release).items():
            server.create(runtime(name, spec, framework))
        yield server


def runtimes(release: str) -> dict[str, tuple[str, Spec]]:
    return upstream_runtimes(release) | {
        f"own-{name}": own_runtime(release, own) for name, own in OWN.items()
    }


@contextmanager
def trainer_server(folder: Path) -> Iterator[TrainerServer]:
    """A server without a Trainer; skips the test where the toolchain was never built."""
    wanted = {*PROGRAMS, "helm", *(name for release in TRAINERS for name in CONTROLLERS[release])}
    if missing := [name for name in wanted if not (paths.BIN / name).exists()]:
        pytest.skip(
            f"needs {', '.join(sorted(missing))} of the rehearsal's toolchain, which `make test`"
            " builds"
        )
    with ExitStack() as stack:
        yield TrainerServer(stack, folder)


def _answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=1).status == 200
    except OSError:
        return False
