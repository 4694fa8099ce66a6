"""The words for a world: start and end it, say what programs need to work in it, look at it."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata

from rehearsal import charts, environment, paths, toolchain, world
from rehearsal.kube import Object
from rehearsal.processes import Process
from rehearsal.terminal import FAILED, REFUSED, table
from rehearsal.toolchain import genuine, go

GONE = ("deleted", "terminated")
"""States in which AWS still lists something for a while that costs nothing and blocks nothing."""


def build(options: argparse.Namespace) -> int:
    """Build the programs of a world, and the chart mirror, where this machine can run a world at
    all."""
    if problem := world.obstacle():
        print(f"{problem}\nTests that need a world are skipped.")
    else:
        build_programs((*toolchain.DEFAULT, *options.also))
    return 0


def up(options: argparse.Namespace) -> int:
    """Start a world with an empty AWS account, or say that one runs."""
    if problem := world.obstacle():
        print(problem, file=sys.stderr)
        return REFUSED
    build_programs((*toolchain.NEEDED, *options.also))
    now = world.start(speed=options.speed)
    environment.prepare()
    print(f"AWS is at {now.account_url}, the API server will be at {now.api_url}")
    print('next: eval "$(python -m rehearsal env)", then pulumi, terraform, aws, kubectl, helm')
    return 0


def build_programs(programs: Iterable[str], report: go.Report = print) -> None:
    """Have the programs, the plugins that somebody demands, and the charts."""
    toolchain.ensure(programs=programs, report=report)
    for name in genuine.RELEASED:
        genuine.download(name, metadata.version(f"pulumi-{name}"), report)
    charts.ensure(report)


def down(options: argparse.Namespace) -> int:
    """End the world, if nothing is left in its account."""
    if not options.force and not world.lost() and world.running() and (left := things()):
        print("\n".join(["still in the account", *inventory_table(left)]))
        print("\n`python -m rehearsal down --force` deletes it and ends the world")
        return FAILED
    world.stop()
    return 0


def things() -> list[Object]:
    """Things of the account that cost money or are in somebody's way."""
    return [thing for thing in world.ask("GET", "inventory") if thing["state"] not in GONE]


def inventory_table(found: Iterable[Object]) -> list[str]:
    """A line for each thing."""
    return table((one["type"], one["id"], one["name"], one["state"]) for one in found)


def inventory(options: argparse.Namespace) -> int:
    """Print what of the account costs money or is in somebody's way."""
    print(json.dumps(things()) if options.json else "\n".join(inventory_table(things())))
    return 0


def env(options: argparse.Namespace) -> int:
    """Print exports for `eval` that make pulumi, terraform, kubectl, helm and aws use the world."""
    environment.prepare()
    print("\n".join(exports(environment.variables(options.region))))
    return 0


def exports(variables: dict[str, str]) -> list[str]:
    """Lines of a shell."""
    first = f"{environment.own_programs()}:{environment.search_path()}"
    return [
        *(f"export {name}={shlex.quote(value)}" for name, value in variables.items()),
        "unset AWS_PROFILE AWS_SESSION_TOKEN",
        f'export PATH={shlex.quote(first)}:"$PATH"',
    ]


def status(options: argparse.Namespace) -> int:
    """Print the processes of the world, and what its keeper had to notice."""
    running = world.list_processes()
    if not running:
        print("no world runs: `python -m rehearsal up` starts one")
        return 0
    print("\n".join([*process_table(running), *(f"  {one}" for one in world.incidents())]))
    return 0


def process_table(processes: list[Process]) -> list[str]:
    """Memory by program; processes of the same program are one row."""
    same: dict[str, list[Process]] = {}
    for process in sorted(processes, key=lambda process: process.name):
        same.setdefault(process.name, []).append(process)
    rows = [
        (name, round(sum(p.rss_mib for p in of_program)), " ".join(str(p.pid) for p in of_program))
        for name, of_program in same.items()
    ]
    return table(
        [
            ("PROGRAM", "MIB", "PROCESSES"),
            *rows,
            ("all", round(sum(process.rss_mib for process in processes)), len(processes)),
        ]
    )


def processes(options: argparse.Namespace) -> int:
    """List the logs of the rehearsal's own processes, or print the end of those whose name contains
    PROCESS."""
    found = sorted({*paths.LOGS.rglob("*.log"), *paths.NODES.rglob("*.log")})
    chosen = [file for file in found if options.process in file.stem]
    if not options.process:
        print("\n".join(table((file.stem, file) for file in found)))
        return 0
    return subprocess.call(["tail", "-n", "100", *chosen]) if chosen else FAILED
