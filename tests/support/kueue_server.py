"""An API server with the Trainer, Kueue and what an environment with queues makes for two teams. Both
controllers are plain processes. No nodes: pods are made and stay Pending.
"""

from __future__ import annotations

import base64
import json
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import charts, paths
from rehearsal.kube import Api, ApiError, Object
from tests.rehearsal.api_server import TOKEN
from tests.support.patience import until
from tests.support.ports import free_port
from tests.support.recording import Graph
from tests.support.stackfile import Edit
from tests.support.team_server import CRDS, environment_with_queues, team_objects
from tests.support.trainer_server import WEBHOOKS, TrainerServer, trainer_server
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.queues.queues import API, CONTROLLER, NAMESPACE
from trainyard.operations.reach.snapshot import condition_of

CORE = f"/apis/{API}"
KINDS = {"TrainJob": "trainer.kubeflow.org/v1alpha1", "PyTorchJob": "kubeflow.org/v1"}
CONVERTED = "CustomResourceDefinition"
PROGRAM = {"2.1.0": "kueue", "2.3.0": "kueue-0.19"}
"""Release of the Trainer → the Kueue of the toolchain that goes with it."""
_WITH_CERTIFICATES = """
mount -t tmpfs tmpfs /etc && mkdir -p /etc/kueue/metrics/certs &&
cp "$0/tls.crt" "$0/tls.key" /etc/kueue/metrics/certs && exec setpriv --pdeathsig KILL "$@"
"""
"""Kueue reads the certificate of its metrics there and nowhere else, also where it serves none."""


@dataclass(frozen=True, kw_only=True)
class KueueServer:
    """The API server with both teams in queues."""

    trainer: TrainerServer
    objects: dict[str, Object]
    """"<kind> <name>" → what the environment made for its teams, but for Kueue."""

    @property
    def api(self) -> Api:
        return self.trainer.api

    def workload(self, namespace: str, job: str) -> Object:
        """The Workload of a job; an empty one where there is none."""
        found = self.api.request("GET", f"{CORE}/namespaces/{namespace}/workloads")["items"]
        return next(
            (each for each in found if each["metadata"]["ownerReferences"][0]["name"] == job), {}
        )

    def condition(self, namespace: str, job: str, name: str) -> Object:
        """A condition of a job's Workload; an empty one where there is none."""
        return condition_of(self.workload(namespace, job), name)

    def clear(self) -> None:
        """Delete the jobs of both teams, and wait until Kueue has forgotten them."""
        assert until(self._cleared)

    def _cleared(self) -> bool:
        """Kueue may delete a job at the same time, and a kind that nobody used may not be served yet."""
        try:
            for team in ("vision", "nlp"):
                for kind, version in KINDS.items():
                    at = f"/apis/{version}/namespaces/team-{team}/{kind.lower()}s"
                    for each in self.api.request("GET", at)["items"]:
                        self.api.request("DELETE", f"{at}/{each['metadata']['name']}")
            return not self.api.request("GET", f"{CORE}/workloads")["items"]
        except ApiError:
            return False


@contextmanager
def kueue_server(
    folder: Path,
    release: str = "2.1.0",
    *edits: Edit,
    graph: Graph | None = None,
    first: Callable[[TrainerServer], object] = lambda trainer: None,
    before: Callable[[Api], object] = lambda api: None,
) -> Iterator[KueueServer]:
    """A server with a release of the Trainer and its Kueue; skips the test where the toolchain has
    not built Kueue. `edits`: of the environment. `graph`: another environment's. `first`: what is there
    before queues are turned on. `before`: what queues need to be active."""
    program = PROGRAM[release]
    if not (paths.BIN / program).exists():
        pytest.skip(
            f"needs {program}: `make worlds` builds it, or `make up` of a stack with queues"
        )
    with trainer_server(folder) as trainer, ExitStack() as stack:
        trainer.install(release)
        for file in CRDS[-1:]:
            trainer.api.apply(yaml.load(file.read_text(), yaml.CSafeLoader), manager="tests")
        graph = graph or environment_with_queues(release, *edits)
        trainer.create(
            json.loads(json.dumps(graph["ClusterTrainingRuntime torch-distributed"].inputs))
        )
        first(trainer)
        made = KueueServer(trainer=trainer, objects=team_objects(graph))
        for each in made.objects.values():
            if each["kind"] != "ResourceQuota":  # one that is older than its kinds refuses them
                trainer.api.apply(each, manager="tests")
        # Policies need no node, and are there before Kueue runs.
        _install(trainer, stack, graph)
        for each in _queues(graph):
            assert until(lambda each=each: _applied(trainer.api, each)), each
        before(trainer.api)
        assert until(lambda: _active(trainer.api))
        yield made


def _install(trainer: TrainerServer, stack: ExitStack, graph: Graph) -> None:
    """The objects of the chart, and its controller with the values of the graph."""
    values = trainer.folder / "kueue-values.yaml"
    wanted: Any = graph["Release kueue"].inputs["values"]
    values.write_text(json.dumps(wanted))
    rendered = trainer.helm(
        "template",
        "kueue",
        str(charts.ensure() / f"kueue-{TRAINER_RELEASES[trainer.release].kueue}"),
        f"--namespace={NAMESPACE}",
        "--kube-version=1.34.0",
        f"--values={values}",
    )
    objects = [each for each in yaml.load_all(rendered, yaml.CSafeLoader) if each]
    trainer.api.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}, manager="tests"
    )
    for each in objects:
        if each["kind"] == CONVERTED:
            # Every object has the stored version.
            each["spec"].pop("conversion", None)
            trainer.api.apply(each, manager="tests")
    kinds = ("workloads", "clusterqueues", "cohorts", "localqueues", "resourceflavors")
    assert until(lambda: all(_served(trainer.api, kind) for kind in kinds))
    config = yaml.safe_load(wanted["managerConfig"]["controllerManagerConfigYaml"])
    port = _start(trainer, stack, config)
    for each in objects:
        if each["kind"] in WEBHOOKS:
            trainer.api.apply(_to_localhost(trainer, each, port), manager="tests")


def _start(trainer: TrainerServer, stack: ExitStack, config: Any) -> int:
    """Start Kueue in the name of its service account, which the policy knows; the port of its
    webhooks."""
    folder = trainer.folder / "kueue"
    folder.mkdir()
    for suffix, file in (("crt", "apiserver.crt"), ("key", "apiserver.key")):
        (folder / f"tls.{suffix}").write_bytes((trainer.folder / file).read_bytes())
    (folder / "kubeconfig").write_text(
        trainer.server.kubeconfig(
            **{
                "token": TOKEN,
                "as": f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}",
                "as-groups": ["system:masters"],
            }
        )
    )
    port, health = free_port(), free_port()
    local = {
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
    }
    (folder / "config.yaml").write_text(json.dumps(config | local))
    log = stack.enter_context((folder / "log").open("ab"))
    command = [
        str(paths.BIN / PROGRAM[trainer.release]),
        f"--config={folder / 'config.yaml'}",
        f"--kubeconfig={folder / 'kubeconfig'}",
        "--feature-gates=VisibilityOnDemand=false",
    ]
    process = subprocess.Popen(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", _WITH_CERTIFICATES, folder, *command],
        stdout=log,
        stderr=log,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    ready = until(lambda: _answers(health) or process.poll() is not None)
    assert ready and process.poll() is None, f"not ready: {folder / 'log'}"
    return port


def _answers(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1).status == 200
    except OSError:
        return False


def _to_localhost(trainer: TrainerServer, config: Object, port: int) -> Object:
    authority = base64.b64encode(Path(trainer.server.authority).read_bytes()).decode()
    for webhook in config["webhooks"]:
        at = webhook["clientConfig"]["service"]["path"]
        webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{at}", "caBundle": authority}
    return config


def _queues(graph: Graph) -> list[Object]:
    """The objects of Kueue, in an order in which each finds what it names."""
    order = (
        "Topology",
        "ResourceFlavor",
        "Cohort",
        "WorkloadPriorityClass",
        "MultiKueueCluster",
        "MultiKueueConfig",
        "AdmissionCheck",
        "ClusterQueue",
        "LocalQueue",
    )
    found = [
        json.loads(json.dumps(node.inputs))
        for node in graph.starting("kubernetes:")
        if "kueue" in node.kind
    ]
    return sorted(found, key=lambda each: order.index(each["kind"]))


def _applied(api: Api, obj: Object) -> bool:
    """The API server hears a moment later of a kind or of a webhook."""
    try:
        api.apply(obj, manager="tests")
    except ApiError:
        return False
    return True


def _served(api: Api, kind: str) -> bool:
    try:
        return bool(api.request("GET", f"{CORE}/{kind}"))
    except ApiError:
        return False


def _active(api: Api) -> bool:
    queues = api.request("GET", f"{CORE}/localqueues")["items"]
    return len(queues) == 2 and all(
        any(c["type"] == "Active" and c["status"] == "True" for c in conditions)
        for queue in queues
        if (conditions := queue.get("status", {}).get("conditions", [])) is not None
    )
