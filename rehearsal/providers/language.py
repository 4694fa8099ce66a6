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
import threading
from collections.abc import Iterator
from concurrent import futures
from importlib import metadata
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from rehearsal.providers.protocol import MESSAGE_LIMIT, announce, stay

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
    home = _virtualenv(info)
    python = home / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(
            f"no virtual environment at {home}: make it, or change runtime.options in Pulumi.yaml"
        )
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    return str(python), {**os.environ, "VIRTUAL_ENV": str(python.parent.parent), "PATH": path}


def _virtualenv(info: Any) -> Path:
    options = json_format.MessageToDict(info.options) if info.HasField("options") else {}
    if "virtualenv" not in options:
        raise FileNotFoundError(
            "the rehearsal's language host needs runtime.options.virtualenv in Pulumi.yaml"
        )
    return Path(os.path.abspath(Path(info.root_directory or ".") / options["virtualenv"]))


class Host(language_pb2_grpc.LanguageRuntimeServicer):
    def __init__(self, engine: str, executor: Path) -> None:
        self.engine, self.executor = engine, executor
        self.running: set[subprocess.Popen[Any]] = set()

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
        needed = json.loads(subprocess.check_output([python, "-c", SCAN], env=environment))
        packages = [
            plugin_pb2.PackageDependency(name=name, kind="resource", version=f"v{it}", server=at)
            for name, it, at in needed
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

    def RunPlugin(self, request, context):
        """Run a plugin that is a Python program, such as a policy pack, and hand on what it writes."""
        python, environment = interpreter(request.info)
        given = dict(variable.split("=", 1) for variable in request.env)
        plugin = subprocess.Popen(
            [python, "-u", request.info.program_directory, *request.args],
            cwd=request.pwd,
            env={**environment, **given, "PATH": environment["PATH"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.running.add(plugin)
        context.add_callback(plugin.terminate)
        for name, written in _written(stdout=plugin.stdout, stderr=plugin.stderr):
            yield language_pb2.RunPluginResponse(**{name: written})
        self.running.discard(plugin)
        yield language_pb2.RunPluginResponse(exitcode=plugin.wait())

    def InstallDependencies(self, request, context):
        """Make the virtual environment of a program or a plugin, and fill it as pip does."""
        home, folder = _virtualenv(request.info), request.info.program_directory
        pip = [home / "bin" / "python", "-m", "pip", "install", "--requirement", "requirements.txt"]
        for command in ([sys.executable, "-m", "venv", home], pip):
            done = subprocess.run(command, cwd=folder, capture_output=True)
            yield language_pb2.InstallDependenciesResponse(stdout=done.stdout, stderr=done.stderr)
            if done.returncode:
                context.abort(grpc.StatusCode.UNKNOWN, f"{command} ended with {done.returncode}")

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


def _written(**streams: IO[bytes] | None) -> Iterator[tuple[str, Any]]:
    """(name of the stream, bytes) as they come, until all streams have ended."""
    parts: SimpleQueue[tuple[str, bytes]] = SimpleQueue()

    def read(name: str, stream: Any) -> None:
        while part := stream.read1():
            parts.put((name, part))
        parts.put((name, b""))

    for name, stream in streams.items():
        threading.Thread(target=read, args=(name, stream), daemon=True).start()
    open_streams = {*streams}
    while open_streams:
        name, part = parts.get()
        if part:
            yield name, part
        else:
            open_streams.discard(name)


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
