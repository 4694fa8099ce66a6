"""Programs of ours that run in the cluster, as modules of a test and as processes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from components.program import SETTINGS
from rehearsal import paths
from stacks.derive.programs import SHARED, program_files, program_folder
from tests.rehearsal.api_server import ApiServer
from tests.support.recording import Graph


@contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """The program's first file, which has its name; its imports find what its pod has."""
    folders = [str(SHARED), str(program_folder(name))]
    sys.path[:0] = folders
    try:
        yield importlib.import_module(name)
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for file in program_files(name):
            sys.modules.pop(file.removesuffix(".py"), None)


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
    """The program of a component as a process, with the objects, files and rights that the graph gives
    it. `settings`: in place of those."""
    made = [
        json.loads(json.dumps(node.inputs))
        for node in graph.starting("kubernetes:")
        if node.options.parent.endswith(f"::{name}")
    ]
    [deployment] = [each for each in made if each["kind"] == "Deployment"]
    for each in sorted(made, key=lambda one: one["kind"] != "Namespace"):
        if each is not deployment:
            server.admin.apply(each, manager="tests")
    [file] = [each for each in made if each["kind"] == "ConfigMap"]
    said = json.dumps(json.loads(file["data"][SETTINGS]) | settings)
    meta = deployment["metadata"]
    account = f"/api/v1/namespaces/{meta['namespace']}/serviceaccounts/{meta['name']}/token"
    token = server.admin.request("POST", account, {"spec": {"expirationSeconds": 3600}})
    folder.mkdir(exist_ok=True)
    for written, text in {
        **file["data"],
        SETTINGS: said,
        "token": token["status"]["token"],
        "ca.crt": Path(server.authority).read_text(),
    }.items():
        (folder / written).write_text(text)
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    main, port = folder / Path(container["command"][2]).name, paths.free_port()
    at = urlsplit(server.url)
    where = {
        "KUBERNETES_SERVICE_HOST": str(at.hostname),
        "KUBERNETES_SERVICE_PORT": str(at.port),
    }
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", sys.executable, "-B", "-c", _START),
                *(str(each) for each in (folder, main, folder / SETTINGS, port)),
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
