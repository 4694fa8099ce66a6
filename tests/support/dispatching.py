"""A manager and its worker: two environments of one checkout, and two API servers with what each of them
makes and with Kueue itself."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from components.cluster.program import SETTINGS
from rehearsal.kube import Api, Object
from tests.rehearsal.api_server import MANAGERS_TOKEN
from tests.support.kueue_server import KueueServer, kueue_server
from tests.support.programs import imported
from tests.support.recording import CHECKOUT, Graph, deploy, stack_values, write_stack
from tests.support.stackfile import ENVIRONMENT, Edit
from tests.support.team_server import TEAMS
from tests.support.trainer_server import TrainerServer
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, Planned
from trainyard.settings.reading.reader import read_file

MANAGER, WORKER, TEAM = "dev", "tokyo", "team-vision"
RELEASE = "2.3.0"
ROLE = "arn:aws:iam::111122223333:role/dev-queues"
CLUSTER = {
    "name": "tokyo-cluster",
    "arn": "arn:aws:eks:::cluster/tokyo-cluster",
    "endpoint": "https://tokyo",
    "certificate_authority": "Y2E=",
}
"""Coordinates of the worker's cluster, as its stack says them."""


def nothing(settings: dict[str, Any]) -> None:
    """No edit."""


def _both(settings: dict[str, Any]) -> None:
    """Settings of both environments: two teams, of which vision is guaranteed half of g6e."""
    vision = {
        key: value
        for key, value in TEAMS["vision"].items()
        if key not in ("max_gpus", "allowed_priorities", "stores")
    }
    settings |= {
        "teams": {
            "vision": vision | {"guaranteed_nodes": {"g6e": 2}, "max_jobs": 50},
            "nlp": TEAMS["nlp"],
        },
        "jobs": {},
    }
    settings["trainer"]["version"] = RELEASE


def checkout(folder: Path, manager: Edit = nothing, worker: Edit = nothing) -> Path:
    """A folder with the stack files of both, and of the manager's team vision."""
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    for stack, queues, edit in (
        (MANAGER, {"workers": [WORKER]}, manager),
        (WORKER, {"manager": ROLE}, worker),
    ):
        values = stack_values("dev")
        _both(values[ENVIRONMENT])
        values[ENVIRONMENT]["queues"] = queues
        edit(values[ENVIRONMENT])
        write_stack(stack, folder, values)
    return folder


def planned(stack: str, folder: Path) -> Planned:
    return plan_stack(read_file(stack, folder), folder)


def environment_of(stack: str, folder: Path) -> EnvironmentPlan:
    plan = planned(stack, folder).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


def manager_graph(folder: Path, cluster: dict[str, str] | None = None) -> Graph:
    """Graph of the manager's stack. `cluster`: coordinates of the worker's cluster; by default it
    is not deployed."""
    contract = {"contract": {"cluster": cluster}} if cluster else {}
    return deploy(MANAGER, folder=folder, references={f"organization/trainyard/{WORKER}": contract})


@dataclass(frozen=True, kw_only=True)
class Dispatching:
    """Both clusters."""

    manager: KueueServer
    worker: KueueServer
    passes: Passes


class Passes:
    """The program that renews passes, with the manager's files. The token it writes is the test's: the
    API server knows no EKS."""

    def __init__(self, graph: Graph) -> None:
        files = graph["ConfigMap dispatch-passes-files"].inputs["data"]
        self._settings = json.loads(files[SETTINGS])

    def renew(self, api: Api, token: str = MANAGERS_TOKEN) -> bool:
        """True once all passes are written."""
        with imported("passes") as passes, patch.object(passes.tokens, "token", lambda *_: token):
            return passes.renew(
                _Asked(api),
                passes.Settings(**self._settings),
                passes.tokens.Credentials("AKID", "secret", "session"),
                datetime.datetime.now(datetime.UTC),
            )


class _Asked:
    """The rehearsal's client in the place of the program's own."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "json") -> Object:
        return self._api.request(method, path, body, content_type=f"application/{kind}")


@contextmanager
def dispatching(folder: Path) -> Iterator[Dispatching]:
    """A manager and a worker, each with its own control plane."""
    files = folder / "checkout"
    files.mkdir()
    checkout(files)
    places = [folder / name for name in (WORKER, MANAGER)]
    for place in places:
        place.mkdir()
    with kueue_server(places[0], RELEASE, graph=deploy(WORKER, folder=files)) as worker:
        for each in _in_queues(deploy(WORKER, folder=files), "queue-manager"):
            worker.api.apply(each, manager="tests")
        graph = manager_graph(files, _reached(worker.trainer))
        passes = Passes(graph)

        def enter(api: Api) -> None:
            for each in _in_queues(graph, "pass-"):
                api.apply(each, manager="tests")
            assert passes.renew(api)

        with kueue_server(places[1], RELEASE, graph=graph, before=enter) as manager:
            yield Dispatching(manager=manager, worker=worker, passes=passes)


def _in_queues(graph: Graph, name: str) -> list[Object]:
    """Objects of Kubernetes whose logical name begins so."""
    return [
        {key: _open(value) for key, value in json.loads(json.dumps(node.inputs)).items()}
        for node in graph.starting("kubernetes:")
        if node.name.startswith(name)
    ]


def _open(value: Any) -> Any:
    return value["$secret"] if isinstance(value, dict) and "$secret" in value else value


def _reached(trainer: TrainerServer) -> dict[str, str]:
    authority = Path(trainer.server.authority).read_bytes()
    return {
        "name": WORKER,
        "arn": f"arn:aws:eks:ap-northeast-2:111122223333:cluster/{WORKER}",
        "endpoint": trainer.server.url,
        "certificate_authority": base64.b64encode(authority).decode(),
    }
