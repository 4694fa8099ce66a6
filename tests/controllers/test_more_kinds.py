"""One job of each kind that the training-operator runs beside PyTorchJob, to its end: the files of
tests/workloads/v1 as a stack would send them, the chart of the checkout with its rights, and the
operator itself at a real API server. The test stands in for kubelet: it says that containers run
and end."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import paths
from rehearsal.kube import Api, Object
from tests.rehearsal.api_server import PROGRAMS, ApiServer, start
from tests.support.patience import until
from tests.support.recording import CHECKOUT, WORKLOADS
from tests.support.stackfile import at, reading
from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS, outcome
from trainyard.catalog.logs.first_end import ranks
from trainyard.manifests.admission import Manifest, judged
from trainyard.operations.reach.snapshot import Job, Snapshot
from trainyard.settings.job import ManifestConfig

NAMESPACE, SECRET = "kubeflow", "training-operator-webhook-cert"
CHART = CHECKOUT / "components/charts/training-operator"
NOBODY = {"matchLabels": {"nobody": "has-it"}}
"""Namespaces of no webhook: nothing routes from the API server to a Service here."""
IN_A_POD = 'mount --bind "$0" /tmp && exec setpriv --pdeathsig KILL "$@"'
"""The operator reads its certificate below /tmp and nowhere else."""
PODS = {"MPIJob": 3, "MXJob": 4, "PaddleJob": 2, "TFJob": 2, "XGBoostJob": 2}
AS_IT_IS = ("", "")
FLAWS: dict[str, tuple[str, str] | None] = {
    "MXJob": None,
    "PaddleJob": ("name: paddle\n", "name: main\n"),
    "TFJob": ("name: tensorflow\n", "name: main\n"),
    "XGBoostJob": ("Master:", "Chief:"),
}
"""Kind with a webhook → a change of its file that the webhook refuses."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The operator, and the API server that it works at."""

    api: Api
    webhook: str
    authority: str

    def denied(self, job: Object) -> str:
        """Why the operator's own webhook refuses a job; empty where it does not."""
        kind = job["kind"].lower()
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": "1",
                "operation": "CREATE",
                "kind": {"group": "kubeflow.org", "version": "v1", "kind": job["kind"]},
                "resource": {"group": "kubeflow.org", "version": "v1", "resource": f"{kind}s"},
                "object": job,
            },
        }
        request = urllib.request.Request(
            f"{self.webhook}/validate-kubeflow-org-v1-{kind}",
            json.dumps(review).encode(),
            {"Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cadata=self.authority)
        context.check_hostname = False  # its name is that of the Service
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            said = json.load(answer)["response"]
        return "" if said["allowed"] else said["status"]["message"]

    def pods(self, job: Object) -> list[Object]:
        selector = f"{JOB_KINDS[job['kind']].pod_label}%3D{job['metadata']['name']}"
        found = self.api.request("GET", f"/api/v1/namespaces/default/pods?labelSelector={selector}")
        return found["items"]

    def say(self, pod: Object, phase: str) -> None:
        """What kubelet would say of a pod and its containers."""
        ended = {"terminated": {"exitCode": 0}}
        state = ended if phase == "Succeeded" else {"running": {}}
        statuses = [
            {
                **{key: each[key] for key in ("name", "image")},
                "imageID": "",
                "ready": phase == "Running",
                "restartCount": 0,
                "state": state,
            }
            for each in pod["spec"]["containers"]
        ]
        self.api.request(
            "PATCH",
            f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status",
            {"status": {"phase": phase, "containerStatuses": statuses}},
            content_type="application/merge-patch+json",
        )


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    wanted = (*PROGRAMS, "helm", "training-operator")
    if missing := [name for name in wanted if not (paths.BIN / name).exists()]:
        pytest.skip(
            f"needs {', '.join(missing)} of the rehearsal's toolchain: `make worlds` builds it"
        )
    folder = tmp_path_factory.mktemp("operator")
    with ExitStack() as stack:
        server = start(stack, folder)
        yield _running(stack, server, folder)


def _running(stack: ExitStack, server: ApiServer, folder: Path) -> Operator:
    """The chart's objects, and its container as a process with the rights of its account."""
    api, objects = server.admin, _objects()
    api.apply(_namespace(), manager="tests")
    for each in objects:
        if each["kind"] == "ValidatingWebhookConfiguration":
            for hook in each["webhooks"]:
                hook["namespaceSelector"] = NOBODY
        assert until(lambda each=each: api.apply(each, manager="tests"))
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/training-operator/token"
    token = api.request("POST", account, {"spec": {}})["status"]["token"]
    inside = folder / "tmp"
    certificates = inside / "k8s-webhook-server/serving-certs"
    certificates.mkdir(parents=True)
    config = json.loads(server.kubeconfig(token=token))
    authority = Path(server.authority).read_bytes()
    config["clusters"][0]["cluster"] = {
        "server": server.url,
        "certificate-authority-data": base64.b64encode(authority).decode(),
    }
    (inside / "kubeconfig").write_text(json.dumps(config))
    port = _start(stack, folder, inside, objects)
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": NAMESPACE},
    }
    assert until(lambda: (api.get(secret) or {}).get("data")), "the rotator fills its Secret"
    filled = (api.get(secret) or {})["data"]
    for name, text in filled.items():
        (certificates / name).write_bytes(base64.b64decode(text))
    made = Operator(
        api=api,
        webhook=f"https://127.0.0.1:{port}",
        authority=base64.b64decode(filled["ca.crt"]).decode(),
    )
    assert until(lambda: _listens(made)), (folder / "operator.log").read_text()[-2000:]
    return made


def _listens(operator: Operator) -> bool:
    try:
        return operator.denied(_sent("TFJob")) == ""
    except OSError:
        return False


def _start(stack: ExitStack, folder: Path, inside: Path, objects: list[Object]) -> int:
    """Port of its webhooks."""
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    port, *others = (paths.free_port() for _ in range(3))
    command = [
        *("unshare", "--map-root-user", "--mount", "sh", "-c", IN_A_POD, str(inside)),
        str(paths.BIN / "training-operator"),
        *container["args"],
        "--kubeconfig=/tmp/kubeconfig",
        f"--webhook-server-port={port}",
        f"--metrics-bind-address=127.0.0.1:{others[0]}",
        f"--health-probe-bind-address=127.0.0.1:{others[1]}",
    ]
    log = stack.enter_context((folder / "operator.log").open("wb"))
    process = subprocess.Popen(
        command, stdout=log, stderr=log, env=os.environ | {"MY_POD_NAMESPACE": NAMESPACE}
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return port


def _objects() -> list[Object]:
    kinds = json.dumps([kind.lower() for kind in MORE_KINDS])
    command = [
        *(str(paths.BIN / "helm"), "template", "training-operator", str(CHART)),
        *(f"--namespace={NAMESPACE}", "--set-json", f"moreKinds={kinds}"),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def _namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def read(kind: str, change: tuple[str, str] = AS_IT_IS) -> Manifest:
    """The file of a kind as a stack judges it."""
    text = (WORKLOADS / f"v1/{kind.removesuffix('Job').lower()}.yaml").read_text()
    assert change[0] in text
    operator = {"version": "1.8.1", "more_kinds": [*MORE_KINDS]}
    config = reading(at("training_operator", operator), at("namespace", "default")).config
    assert config and config.environment
    return judged(
        text.replace(*change),
        f"{kind.lower()}.yaml",
        trainer="2.1.0",
        operator="1.8.1",
        environment=config.environment,
        pool="g6e",
        claims={},
        namespace="default",
        production=False,
        privileged_pods=False,
    )


def _sent(kind: str, change: tuple[str, str] = AS_IT_IS) -> Object:
    """The object that a stack sends."""
    entry = ManifestConfig(manifest=f"{kind.lower()}.yaml", pool="g6e")
    plan = read(kind, change).plan(entry, "default", {})
    return {
        "apiVersion": JOB_KINDS[kind].api_version,
        "kind": kind,
        "metadata": {"name": plan.name, "namespace": "default"},
        "spec": plan.spec,
    }


@pytest.mark.parametrize("kind", MORE_KINDS)
def test_a_job_of_each_kind_goes_to_its_end(kind: str, operator: Operator) -> None:
    assert read(kind).errors == ()
    job = _sent(kind)
    operator.api.request("POST", operator.api.path(job, collection=True), job)
    assert until(lambda: len(operator.pods(job)) == PODS[kind])
    pods = operator.pods(job)
    for pod in pods:
        operator.say(pod, "Running")
    assert sorted(number for _, number in ranks(pods)) == [*range(PODS[kind])], "as in logs --rank"

    def state() -> list[Any]:
        conditions = (operator.api.get(job) or {}).get("status", {}).get("conditions") or []
        return [each["type"] for each in conditions if each["status"] == "True"]

    assert until(lambda: "Running" in state())
    [seen] = _seen(operator, job)
    assert (seen.kind, seen.state, seen.nodes, len(seen.pods)) == (
        kind,
        "Running",
        *2 * [PODS[kind]],
    )
    for pod in pods:
        waits = (
            kind == "MPIJob" and "worker" in pod["metadata"]["name"]
        )  # for ranks of the launcher
        if not waits:
            operator.say(pod, "Succeeded")
    assert until(lambda: outcome(operator.api.get(job) or {}) == JOB_KINDS[kind].succeeded)
    [seen] = _seen(operator, job)
    assert seen.complete


def _seen(operator: Operator, job: Object) -> list[Job]:
    """Jobs as `trainyard status` sees them."""
    there = {f"{job['kind'].lower()}s": [operator.api.get(job)], "pods": operator.pods(job)}
    return Snapshot(objects=there).jobs()


@pytest.mark.parametrize("kind", FLAWS)
def test_a_flaw_that_the_webhook_refuses_is_refused_at_preview(
    kind: str, operator: Operator
) -> None:
    assert operator.denied(_sent(kind)) == ""
    if change := FLAWS[kind]:
        assert operator.denied(_sent(kind, change))
        assert read(kind, change).errors
