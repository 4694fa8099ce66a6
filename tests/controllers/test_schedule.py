"""A schedule at a real API server with the controller of CronJobs: its objects are admitted, the controller makes
the Job of a time, and the program makes the run with the rights of its pod and no others."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from rehearsal import paths
from rehearsal.kube import ApiError, Object
from tests.rehearsal.api_server import PROGRAMS, ApiServer, start
from tests.support.crds import FILES, upstream
from tests.support.graphs import environment
from tests.support.patience import PATIENCE, until
from tests.support.recording import Graph
from tests.support.team_server import As
from tests.trainyard.derive.test_schedule import nightly
from trainyard.objects.jobs.schedule import REFUSED, SETTINGS

SPACE = "training"
JOBS = f"/apis/batch/v1/namespaces/{SPACE}/jobs"
RUNS = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{SPACE}/trainjobs"
CRON = f"/apis/batch/v1/namespaces/{SPACE}/cronjobs/nightly"
KINDS = ("ServiceAccount", "ConfigMap", "Role", "RoleBinding", "CronJob")
_START = """
import pathlib, runpy, sys
sys.path.insert(0, sys.argv[1])
import api_server
api_server.ACCOUNT = pathlib.Path(sys.argv[1])
main, sys.argv = sys.argv[2], sys.argv[2:]
runpy.run_path(main, run_name="__main__")
"""
"""The program, with its service account in another folder than that of a pod."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return environment(nightly(schedule={"cron": "* * * * *", "concurrency_policy": "replace"}))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, graph: Graph) -> Iterator[ApiServer]:
    if missing := [name for name in PROGRAMS if not (paths.BIN / name).exists()]:
        pytest.skip(f"needs {', '.join(missing)} of the rehearsal's toolchain")
    with ExitStack() as stack:
        started = start(stack, tmp_path_factory.mktemp("schedule"))
        crd = yaml.safe_load(upstream(FILES["TrainJob"].format(trainer="2.1.0")).read_text())
        started.admin.apply(crd, manager="tests")
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        started.admin.apply(space, manager="tests")
        until(lambda: _served(started))
        for kind in KINDS:
            for node in graph.of(kind):
                if node.options.parent.endswith("::nightly"):
                    made = json.loads(json.dumps(node.inputs))
                    started.admin.apply(made, manager="tests")
        yield started


def _served(server: ApiServer) -> bool:
    try:
        return "items" in server.admin.request("GET", RUNS)
    except ApiError:
        return False


def _jobs(server: ApiServer) -> list[Object]:
    return server.admin.request("GET", JOBS)["items"]


def _pod_of(server: ApiServer, job: Object) -> Object | None:
    uid = job["metadata"]["uid"]
    pods = server.admin.request("GET", f"/api/v1/namespaces/{SPACE}/pods")["items"]
    label = "batch.kubernetes.io/controller-uid"
    return next((pod for pod in pods if pod["metadata"]["labels"].get(label) == uid), None)


def _started(server: ApiServer) -> tuple[Object, Object] | None:
    """A job with its pod."""
    found = [(job, _pod_of(server, job)) for job in _jobs(server)]
    return next(((job, pod) for job, pod in found if pod), None)


def _variables(pod: Object) -> dict[str, str]:
    """Variables of the pod, as kubelet fills them."""
    found: dict[str, str] = {}
    for each in pod["spec"]["containers"][0]["env"]:
        key = each["valueFrom"]["fieldRef"]["fieldPath"].removeprefix("metadata.labels['")
        found[each["name"]] = pod["metadata"]["labels"][key.removesuffix("']")]
    return found


def _program(server: ApiServer, folder: Path, pod: Object) -> subprocess.Popen[str]:
    """The program as its pod runs it."""
    account = (
        f"/api/v1/namespaces/{SPACE}/serviceaccounts/{pod['spec']['serviceAccountName']}/token"
    )
    token = server.admin.request("POST", account, {"spec": {"expirationSeconds": 3600}})
    files = server.admin.request("GET", f"/api/v1/namespaces/{SPACE}/configmaps/nightly-schedule")
    folder.mkdir(exist_ok=True)
    for name, text in {
        **files["data"],
        "token": token["status"]["token"],
        "ca.crt": Path(server.authority).read_text(),
    }.items():
        (folder / name).write_text(text)
    at = urlsplit(server.url)
    return subprocess.Popen(
        [
            *("setpriv", "--pdeathsig", "KILL", sys.executable, "-B", "-c", _START),
            *(str(folder), str(folder / "scheduled.py"), str(folder / SETTINGS)),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={
            **_variables(pod),
            "KUBERNETES_SERVICE_HOST": str(at.hostname),
            "KUBERNETES_SERVICE_PORT": str(at.port),
        },
    )


def _condition(server: ApiServer, run: Object, kind: str) -> None:
    ended = {
        "type": kind,
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-11-27T00:00:00Z",
    }
    path = f"{RUNS}/{run['metadata']['name']}/status"
    body = {**server.admin.request("GET", path.removesuffix("/status"))}
    server.admin.request("PUT", path, {**body, "status": {"conditions": [ended]}})


def test_a_time_makes_a_run_which_ends_as_its_job_does(server: ApiServer, tmp_path: Path) -> None:
    """One time, from the controller of CronJobs to the end of the run; the next time replaces nothing, since a
    complete Job is no active one."""
    until(lambda: _jobs(server), lambda: str(server.admin.request("GET", CRON)))
    server.admin.request(
        "PATCH", CRON, {"spec": {"suspend": True}}, content_type="application/merge-patch+json"
    )
    # the end of a minute before the suspension has replaced the job that was seen
    found = until(lambda: _started(server))
    assert found
    job, pod = found
    program = _program(server, tmp_path / "pod", pod)
    [run] = until(lambda: server.admin.request("GET", RUNS)["items"])
    minutes = int(job["metadata"]["name"].rpartition("-")[2])
    assert run["metadata"]["name"].startswith("nightly-20") and minutes * 60 > 1.7e9
    assert run["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    program.kill()
    again = _program(server, tmp_path / "pod", pod)
    _condition(server, run, "Failed")
    assert again.wait(PATIENCE) == REFUSED
    assert len(server.admin.request("GET", RUNS)["items"]) == 1
    server.admin.request(
        "DELETE", f"{JOBS}/{job['metadata']['name']}", {"propagationPolicy": "Background"}
    )
    until(lambda: not server.admin.request("GET", RUNS)["items"])


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", f"/api/v1/namespaces/{SPACE}/secrets"),
        ("GET", f"/api/v1/namespaces/{SPACE}/configmaps"),
        ("POST", f"/api/v1/namespaces/{SPACE}/configmaps"),
        ("POST", f"/api/v1/namespaces/{SPACE}/pods"),
        ("POST", JOBS),
        ("DELETE", f"{RUNS}/nightly"),
        ("PATCH", CRON),
        ("GET", RUNS.replace(SPACE, "default")),
        ("POST", RUNS.replace(SPACE, "default")),
        ("GET", "/api/v1/nodes"),
    ],
)
def test_the_pod_may_do_nothing_else(server: ApiServer, verb: str, path: str) -> None:
    someone = As(
        server,
        f"system:serviceaccount:{SPACE}:nightly-schedule",
        "system:serviceaccounts",
        f"system:serviceaccounts:{SPACE}",
    )
    with pytest.raises(ApiError) as refused:
        someone.request(verb, path, {"metadata": {"name": "nightly"}} if verb != "GET" else None)
    assert refused.value.code == 403
