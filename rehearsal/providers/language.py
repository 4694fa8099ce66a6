"""pulumi-language-python: runs the Python program for the engine, as the host that a released
pulumi brings does.

The upstream host is no module of the Go proxy; a pulumi that has it beside itself uses that one.
The program runs through upstream's own pulumi-language-python-exec, which install.py puts beside
this host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent import futures
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from rehearsal.providers.protocol import MESSAGE_LIMIT, announce, stay

EXEC = "pulumi-language-python-exec"
MESSAGE_SHOWN = 32
"""Exit status of a program whose error the user has seen already."""
SCAN = """
import glob, json, os, sys
found = []
for folder in sys.path:
    for file in glob.glob(os.path.join(glob.escape(folder), "*", "pulumi-plugin.json")):
        with open(file) as opened:
            about = json.load(opened)
        if about.get("resource"):
            found.append([about["name"], about["version"], about.get("server") or ""])
print(json.dumps(found))
"""
"""Asks the program's own interpreter which plugins its packages need."""


def interpreter(info: Any) -> tuple[str, dict[str, str]]:
    """The program's Python and its environment, by the `virtualenv` option of Pulumi.yaml."""
    options = json_format.MessageToDict(info.options) if info.HasField("options") else {}
    if "virtualenv" not in options:
        raise FileNotFoundError(
            "the rehearsal's language host needs runtime.options.virtualenv in Pulumi.yaml"
        )
    home = Path(info.root_directory or ".") / options["virtualenv"]
    python = Path(os.path.abspath(home)) / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(
            f"no virtual environment at {home}: make it, or change runtime.options in Pulumi.yaml"
        )
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    return str(python), {**os.environ, "VIRTUAL_ENV": str(python.parent.parent), "PATH": path}


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    def __init__(self, engine: str, executor: Path) -> None:
        self.engine, self.executor = engine, executor
        self.running: set[subprocess.Popen[bytes]] = set()

    def Handshake(self, request, context):
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi"))

    def About(self, request, context):
        return language_pb2.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def GetProgramDependencies(self, request, context):
        return language_pb2.GetProgramDependenciesResponse()

    def RuntimeOptionsPrompts(self, request, context):
        return language_pb2.RuntimeOptionsResponse()

    def GetRequiredPackages(self, request, context):
        python, environment = interpreter(request.info)
        answer = subprocess.run(
            [python, "-c", SCAN], env=environment, capture_output=True, text=True, check=True
        )
        packages = [
            plugin_pb2.PackageDependency(
                name=name, kind="resource", version=f"v{version}", server=server
            )
            for name, version, server in json.loads(answer.stdout)
        ]
        return language_pb2.GetRequiredPackagesResponse(packages=packages)

    def Run(self, request, context):
        try:
            python, environment = interpreter(request.info)
        except FileNotFoundError as fault:
            return language_pb2.RunResponse(error=str(fault))
        environment["PULUMI_CONFIG"] = json.dumps(dict(request.config))
        environment["PULUMI_CONFIG_SECRET_KEYS"] = json.dumps(list(request.configSecretKeys))
        command = [python, "-u", str(self.executor), *self._arguments(request)]
        program = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)
        self.running.add(program)
        context.add_callback(program.terminate)
        status = program.wait()
        self.running.discard(program)
        if status == MESSAGE_SHOWN:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(
            error=f"Program exited with non-zero exit code: {status}" if status else ""
        )

    def _arguments(self, request: Any) -> list[str]:
        options = {
            "--monitor": request.monitor_address,
            "--engine": self.engine,
            "--project": request.project,
            "--stack": request.stack,
            "--organization": request.organization,
            "--root_directory": request.info.root_directory,
            "--pwd": request.info.program_directory or request.pwd,
            "--dry_run": str(request.dryRun).lower(),
            "--parallel": str(request.parallel),
        }
        given = [part for option in options.items() for part in option]
        return [*given, request.info.entry_point or ".", *request.args]

    def Cancel(self, request, context):
        for program in list(self.running):
            program.terminate()
        return empty_pb2.Empty()


def main() -> None:
    executor = Path(os.environ.pop("PULUMI_LANGUAGE_PYTHON_EXEC"))
    server = grpc.server(
        futures.ThreadPoolExecutor(16), options=[("grpc.max_receive_message_length", MESSAGE_LIMIT)]
    )
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(Host(sys.argv[-1], executor), server)
    announce(server)
    stay()


if __name__ == "__main__":
    main()
