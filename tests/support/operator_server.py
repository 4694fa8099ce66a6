"""The training-operator itself at a real API server, with the chart of the checkout and its rights. Tests
stand in for kubelet: they say that containers run and end."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from rehearsal import paths
from rehearsal.kube import Api, Object
from tests.rehearsal.api_server import PROGRAMS, ApiServer, start
from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from tests.support.recording import CHECKOUT
from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS

NAMESPACE, SECRET = "kubeflow", "training-operator-webhook-cert"
CHART = CHECKOUT / "components/charts/training-operator"
NOBODY = {"matchLabels": {"nobody": "has-it"}}
"""Namespaces of no webhook: nothing routes from the API server to a Service here."""
IN_A_POD = 'mount --bind "$0" /tmp && exec setpriv --pdeathsig KILL "$@"'
"""The operator reads its certificate below /tmp and nowhere else."""
NO_SPEC: Object = {
    "apiVersion": JOB_KINDS["PyTorchJob"].api_version,
    "kind": "PyTorchJob",
    "metadata": {"name": "none", "namespace": "default"},
    "spec": {},
}


@dataclass(frozen=True, kw_only=True)
class Operator:
    """The operator, and the API server that it works at."""

    api: Api
    webhook: str
    authority: str

    def denied(self, job: Object) -> str:
        """The reason why the operator's own webhook refuses a job; empty where it does not."""
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
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as answer:
            said = json.load(answer)["response"]
        return "" if said["allowed"] else said["status"]["message"]

    def pods(self, job: Object) -> list[Object]:
        selector = f"{JOB_KINDS[job['kind']].pod_label}%3D{job['metadata']['name']}"
        found = self.api.request("GET", f"/api/v1/namespaces/default/pods?labelSelector={selector}")
        return found["items"]

    def say(self, pod: Object, phase: str) -> None:
        """Say of a pod and its containers what kubelet would say."""
        ended = {"terminated": {"exitCode": int(phase != "Succeeded")}}
        state = {"running": {}} if phase == "Running" else ended
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


@contextmanager
def operator_server(folder: Path) -> Iterator[Operator]:
    """The operator while the context lasts. Skips where the toolchain of the rehearsal is not built."""
    wanted = (*PROGRAMS, "helm", "training-operator")
    if missing := [name for name in wanted if not (paths.BIN / name).exists()]:
        pytest.skip(
            f"needs {', '.join(missing)} of the rehearsal's toolchain: `make worlds` builds it"
        )
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
    """True where its webhooks answer, whatever they say of a job without a spec."""
    try:
        return bool(operator.denied(NO_SPEC))
    except OSError:
        return False


def _start(stack: ExitStack, folder: Path, inside: Path, objects: list[Object]) -> int:
    """Port of its webhooks."""
    [deployment] = [each for each in objects if each["kind"] == "Deployment"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    port, *others = (free_port() for _ in range(3))
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
