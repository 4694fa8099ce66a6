"""`trainyard migrate FILE…`: print PyTorchJobs and TrainJobs as entries of a stack file.

Behind the entries stand comments: what changed, what has no counterpart, and last the problems of
the original files.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trainyard.catalog import versions
from trainyard.catalog.job_kinds import ENTRY_KINDS, OTHER_JOBS
from trainyard.catalog.scalars import as_file
from trainyard.manifests.blanks import agreed
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import Workload, read_manifest
from trainyard.manifests.rules import manifest_problems
from trainyard.migrate.migration import migrate
from trainyard.migrate.result import Migration, NotMigrated
from trainyard.migrate.v2_script import NOT_DONE
from trainyard.problems import At, InputError, Problem, listed
from trainyard.settings.environment import EnvironmentConfig, StackConfig
from trainyard.settings.reading.files import text_of
from trainyard.settings.reading.reader import read_file

TO_CHANGE = "To change before the stack accepts it"
ALL = "# Every job of the files is an entry above."
"""Last line where no job is left out."""


def main(given: argparse.Namespace) -> int:
    """Print the entries of all jobs in the files. Return 1 where a job cannot be migrated, a file has a secret or is
    no sound YAML, or the stack does not accept an entry; 2 where a file cannot be read. Another error of a file is no
    refusal: its entry is the job without it."""
    files = given.files
    environment = _environment(given.stack) if given.stack else None
    if given.stack and environment is None:
        print(
            f"Pulumi.{given.stack}.yaml: must be a sound environment, or a team on one; trainyard"
            f" check {given.stack}"
        )
        return 2
    release = given.trainer or _release(environment)
    try:
        workloads, unread = _read(files)
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; trainyard migrate job.yaml")
        return 2
    problems: list[Problem] = [*unread]
    problems += agreed(
        workloads,
        lambda filled: manifest_problems(
            contexts_of(filled, release=release, environment=environment)
        ),
    )
    migrations, not_migrated = migrate_all(
        workloads, Path(files[0]).name, release=release, environment=environment
    )
    to_change = _to_change(given.stack, migrations)
    sections = {
        **_sections(migrations, to_change),
        "Problems in the original file": listed(problems),
    }
    _print(_entries(migrations), sections, not_migrated)
    return 1 if unread or to_change or not_migrated else 0


def _read(files: Sequence[str]) -> tuple[list[Workload], list[InputError]]:
    """Every object of the files, and what is wrong with the files themselves. OSError where one cannot be read."""
    manifests = [read_manifest(text_of(Path(file)), Path(file).name) for file in files]
    return (
        [workload for objects, _ in manifests for workload in objects],
        [error for _, errors in manifests for error in errors],
    )


def _release(environment: EnvironmentConfig | None) -> str:
    """Release of the Trainer for which a job becomes an entry, where nobody names one."""
    return environment.trainer.version if environment else next(iter(versions.TRAINERS))


def _print(
    entries: Sequence[str],
    sections: Mapping[str, Sequence[str]],
    not_migrated: Sequence[InputError],
) -> None:
    """Print everything. `sections`: by their headings. `not_migrated`: why jobs have no entry."""
    for heading, lines in sections.items():
        entries = [*entries, *_section(heading, lines)]
    last = _section("Cannot be migrated", listed(not_migrated)) if not_migrated else [ALL]
    print("\n".join([*entries, *last]))


def _to_change(stack: str | None, migrations: Sequence[Migration]) -> list[InputError] | None:
    """Errors of the entries in a stack; None where no stack is named."""
    entries = {it.name: it.entry for it in migrations}
    if not (stack and entries):
        return None
    from trainyard.migrate.in_stack import errors_in_stack  # only here: the plan takes long to load

    return errors_in_stack(stack, entries)


def _environment(stack: str) -> EnvironmentConfig | None:
    """The environment of a stack file of this folder, of a team the one that it is on; None where
    there is none, or none that can be read."""
    config = _config(stack)
    if config and config.team:
        config = _config(config.team.environment)
    known = (
        config and config.environment and config.environment.trainer.version in versions.TRAINERS
    )
    return config.environment if config and known else None


def _config(stack: str) -> StackConfig | None:
    try:
        return read_file(stack, Path()).config
    except FileNotFoundError:
        return None


def _sections(
    migrations: Sequence[Migration], to_change: Sequence[InputError] | None
) -> dict[str, Sequence[str]]:
    """Heading → what it says about all entries."""
    kept = _pytorch_jobs(migrations)
    return {
        "Changed": [line for it in migrations for line in it.changed],
        "No counterpart": [line for it in migrations for line in it.no_counterpart],
        "Not in the entry": [line for it in migrations for line in it.left_over],
        **({"To keep it a PyTorchJob, replace `runtime` with": kept} if kept else {}),
        "Not done by Trainer v2": NOT_DONE if migrations else (),
        **({} if to_change is None else {TO_CHANGE: listed(to_change)}),
    }


def migrate_all(
    workloads: Sequence[Workload],
    file: str,
    *,
    release: str = next(iter(versions.TRAINERS)),
    environment: EnvironmentConfig | None = None,
) -> tuple[list[Migration], list[InputError]]:
    """The entries of all jobs, and why others cannot be migrated. `file` is the first file."""
    jobs = [workload for workload in workloads if workload.kind in ENTRY_KINDS]
    if not jobs:
        kinds = [workload.kind for workload in workloads]
        instead = next((OTHER_JOBS[kind] for kind in kinds if kind in OTHER_JOBS), "")
        return [], [
            At("", file=file).must(
                "contain a PyTorchJob or a TrainJob",
                got=", ".join(kinds) or "no object",
                fix=instead
                or "name the file of the job too: trainyard migrate job.yaml runtime.yaml",
            )
        ]
    migrations, errors = list[Migration](), list[InputError]()
    for job in jobs:
        try:
            taken = [each.name for each in migrations]
            migrations.append(
                migrate(job, workloads, release=release, environment=environment, taken=taken)
            )
        except NotMigrated as reason:
            errors.append(reason.error)
    return migrations, errors


def _entries(migrations: Iterable[Migration]) -> list[str]:
    """The YAML of the entries; the script of an entry as a block."""
    lines: list[str] = []
    for migration in migrations:
        settings = {key: value for key, value in migration.entry.items() if key != "script"}
        entry = as_file({migration.name: settings})
        lines.append(textwrap.indent(entry, "  ").rstrip("\n"))
        if script := migration.entry.get("script"):
            lines += ["    script: |", textwrap.indent(script, "      ")]
    return ["jobs:", *lines] if lines else [""]


def _pytorch_jobs(migrations: Iterable[Migration]) -> list[str]:
    """A line for each job that can stay a PyTorchJob."""
    return [
        f"{it.name}: " + as_file(it.pytorch_job, default_flow_style=True, width=999).strip()
        for it in migrations
        if it.pytorch_job
    ]


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    """A heading and its lines as comments of YAML."""
    if not lines:
        return [f"# {heading}: nothing"]
    return [f"# {heading}:", *(f"#   {line.strip()}" for line in lines)]
