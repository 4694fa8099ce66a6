"""Programs of ours that run in the cluster, as modules of a test and as processes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from components.cluster.program import SETTINGS
from rehearsal import paths
from tests.rehearsal.api_server import PROGRAMS, ApiServer, start
from tests.support.crds import KARPENTER, upstream
from tests.support.patience import until
from tests.support.ports import free_port
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT
from trainyard.parts.programs import program_files, program_paths


@contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """The program's first file, which has its name; its imports find what its pod has."""
    folders = list(dict.fromkeys(str(file.parent) for file in program_paths(name)))
    sys.path[:0] = folders
    try:
        yield importlib.import_module(name)
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for file in program_files(name):
            sys.modules.pop(file.removesuffix(".py"), None)


def program_fixture(name: str) -> Any:
    """A fixture: the program, as one module for all tests of a file."""

    @pytest.fixture(scope="module")
    def program() -> Iterator[ModuleType]:
        with imported(name) as module:
            yield module

    return program


def installed(
    server: ApiServer, graph: Graph, name: str, folder: Path, **settings: object
) -> dict[str, str]:
    """The objects of a program's component, but for its pod; into the folder what the pod has: its files
    and its service account. Returns the variables of the pod. `settings`: in place of those."""
    made = [
        json.loads(json.dumps(node.inputs))
        for node in graph.starting("kubernetes:")
        if node.options.parent.endswith(f"::{name}") and node.inputs["kind"] != "Deployment"
    ]
    for each in sorted(made, key=lambda one: one["kind"] != "Namespace"):
        server.admin.apply(each, manager="tests")
    [file] = [each for each in made if each["kind"] == "ConfigMap"]
    app = file["metadata"]["name"]
    account = f"/api/v1/namespaces/{app}/serviceaccounts/{app}/token"
    token = server.admin.request("POST", account, {"spec": {"expirationSeconds": 3600}})
    for written, text in {
        **file["data"],
        SETTINGS: json.dumps(json.loads(file["data"][SETTINGS]) | settings),
        "token": token["status"]["token"],
        "ca.crt": Path(server.authority).read_text(),
    }.items():
        (folder / written).write_text(text)
    at = urlsplit(server.url)
    return {
        "KUBERNETES_SERVICE_HOST": str(at.hostname),
        "KUBERNETES_SERVICE_PORT": str(at.port),
    }


@contextmanager
def entered(server: ApiServer, graph: Graph, name: str, folder: Path) -> Iterator[ModuleType]:
    """The program as a module that calls the API server with the rights of its pod."""
    where = installed(server, graph, name, folder)
    with imported(name) as module, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules["api_server"], "ACCOUNT", folder)
        for variable, value in where.items():
            patch.setenv(variable, value)
        yield module


@contextmanager
def repairing(folder: Path) -> Iterator[tuple[ApiServer, ModuleType]]:
    """A real API server that knows NodeClaims, and the program of repair with the rights of its pod there.
    Skips where the toolchain is not built."""
    if missing := [name for name in PROGRAMS if not (paths.BIN / name).exists()]:
        pytest.skip(f"needs {', '.join(missing)} of the rehearsal's toolchain")
    graph = deploy("dev", lambda values: values[ENVIRONMENT].update(repair={}))
    with ExitStack() as stack:
        server = start(stack, folder)
        crd = yaml.safe_load(upstream(f"{KARPENTER}/karpenter.sh_nodeclaims.yaml").read_text())
        server.admin.apply(crd, manager="tests")
        # The API server refuses pods of a namespace before a controller has made this account in it.
        account = {"apiVersion": "v1", "kind": "ServiceAccount"}
        until(
            lambda: server.admin.get(
                account | {"metadata": {"name": "default", "namespace": "default"}}
            )
        )
        yield server, stack.enter_context(entered(server, graph, "repair", folder))


_START = """
import pathlib, runpy, sys
sys.path.insert(0, sys.argv[1])
import api_server
api_server.ACCOUNT = pathlib.Path(sys.argv[1])
main, sys.argv = sys.argv[2], sys.argv[2:]
runpy.run_path(main, run_name="__main__")
"""
"""The program, with its service account in another folder than that of a pod."""


@contextmanager
def running(
    server: ApiServer, graph: Graph, name: str, folder: Path, **settings: object
) -> Iterator[subprocess.Popen[bytes]]:
    """The program as a process with the rights of its pod. `settings`: in place of the graph's."""
    folder.mkdir(exist_ok=True)
    where = installed(server, graph, name, folder, **settings)
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", sys.executable, "-B", "-c", _START),
                *(str(folder), str(folder / f"{name}.py"), str(folder / SETTINGS)),
                str(free_port()),
            ],
            stdout=log,
            stderr=log,
            env=os.environ | where,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
