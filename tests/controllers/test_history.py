"""The program that records runs at a real API server, with the rights that the environment gives it and
no others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import yaml

from components.cluster.program import SETTINGS
from rehearsal import paths
from rehearsal.kube import ApiError, Object
from tests.rehearsal.api_server import PROGRAMS, ApiServer, start
from tests.support.crds import FILES, upstream
from tests.support.patience import until
from tests.support.programs import entered
from tests.support.recording import deploy
from tests.support.stackfile import ENVIRONMENT
from tests.support.team_server import As
from tests.trainyard.operations.finished import pod, train_job
from trainyard.objects.programs.history import APP
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.runs.records import KEPT, records, runs_of

PLACE = f"/api/v1/namespaces/{APP}/configmaps"
JOB_PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/training/trainjobs/t5"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ApiServer, Any]]:
    """The API server, and a function that makes a new pod of the program."""
    if missing := [name for name in PROGRAMS if not (paths.BIN / name).exists()]:
        pytest.skip(f"needs {', '.join(missing)} of the rehearsal's toolchain")
    folder = tmp_path_factory.mktemp("history")
    graph = deploy("dev", lambda values: values[ENVIRONMENT].update(history={}))
    with ExitStack() as stack:
        started = start(stack, folder)
        crd = yaml.safe_load(upstream(FILES["TrainJob"].format(trainer="2.1.0")).read_text())
        started.admin.apply(crd, manager="tests")
        until(lambda: _served(started))
        module = stack.enter_context(entered(started, graph, "history", folder))

        def program() -> Any:
            return module.History(module.Watching(), module.Settings.read(folder / SETTINGS))

        yield started, program


def _served(api: ApiServer) -> bool:
    try:
        return "items" in api.admin.request("GET", JOB_PATH.rpartition("/")[0])
    except ApiError:
        return False


def _known(api: ApiServer) -> Any:
    items = api.admin.request("GET", PLACE)["items"]
    return runs_of(Snapshot(objects={}), *records(lambda *_: json.dumps({"items": items})))


def _after_a_look(api: ApiServer, program: Any) -> Any:
    """The known runs, once the program has looked: its watch hears of a change a moment later."""
    program.step(time.time())
    return _known(api)


def _job() -> Object:
    made = train_job(ended=None)
    made["metadata"] = {"name": "t5", "namespace": "training"}
    del made["status"]
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", **made}


def _pod() -> Object:
    made = pod(0)
    meta = {key: made["metadata"][key] for key in ("name", "labels")}
    spec = {
        "nodeName": "n0",
        "nodeSelector": made["spec"]["nodeSelector"],
        "containers": [{"name": "node", "image": "a:1", "resources": {}}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta | {"namespace": "training"},
        "spec": spec,
    }


def test_a_run_is_recorded_changed_and_forgotten_with_the_programs_own_rights(
    server: tuple[ApiServer, Any],
) -> None:
    api, program = server
    looks = program()
    looks.step(time.time())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    api.admin.apply(namespace, manager="tests")
    api.admin.apply(
        account | {"metadata": {"name": "default", "namespace": "training"}}, manager="tests"
    )
    api.admin.apply(_job(), manager="tests")
    api.admin.apply(_pod(), manager="tests")
    until(lambda: [len(run.times) for run in _after_a_look(api, looks).going] == [1])
    assert _known(api).history == KEPT
    api.admin.request("DELETE", JOB_PATH)
    until(lambda: _after_a_look(api, looks).finished)
    api.until_listed(PLACE)
    program().step(time.time())  # another pod of it reads what this one wrote
    [run] = _known(api).finished
    assert (run.job.name, run.job.state, run.known) == ("t5", "Deleted", "")
    api.until_listed(PLACE)
    program().step(time.time() + 181 * 86400)
    assert _known(api).finished == ()


def test_it_reads_no_secret_and_writes_nowhere_else(server: tuple[ApiServer, Any]) -> None:
    api, _ = server
    me = As(api, f"system:serviceaccount:{APP}:{APP}")
    for method, path in (
        ("GET", "/api/v1/secrets"),
        ("POST", "/api/v1/namespaces/default/configmaps"),
        ("DELETE", "/api/v1/namespaces/training/pods/t5-node-0-0-x7k2p"),
    ):
        with pytest.raises(ApiError) as refused:
            me.request(method, path, {"metadata": {"name": "x"}} if method == "POST" else None)
        assert refused.value.code == 403
