"""The environment of a team and its other teams, as far as their stack files are in the same
checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from trainyard.problems import InputError
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.reading.reader import Reading, environments, read_file, stack_files


def other_teams(stack: str, environment: str, folder: Path) -> dict[str, TeamConfig]:
    """Name of the stack → its team, of each team of the environment but the stack's own. A stack
    file with errors may be missing: they are its own team's business."""
    teams: dict[str, TeamConfig] = {}
    for name, file in stack_files(folder).items():
        team = None if name in (stack, environment) else _team(name, file, file.stat().st_mtime_ns)
        if team and team.environment == environment:
            teams[name] = team
    return teams


@cache
def _team(name: str, file: Path, changed: int) -> TeamConfig | None:
    """The team of a stack file, which was last changed then; None for another stack file."""
    if b":team:" not in file.read_bytes():
        return None
    config = read_file(name, file.parent).config
    return config.team if config else None


def environment_of(team: TeamConfig, folder: Path) -> tuple[Reading, InputError | None]:
    """The stack file of a team's environment, and why it is none."""
    path, got = "team.environment", team.environment
    try:
        reading = read_file(team.environment, folder)
    except FileNotFoundError:
        must = "be a stack with a stack file in this checkout"
        error = InputError(path=path, must=must, got=got, **_other_environment(folder))
        return Reading(configs=(), errors=()), error
    other = reading.config.team if reading.config else None
    if other is None:
        return reading, None
    must = "be an environment, not a team"
    fix = _other_environment(folder, other.environment)
    return reading, InputError(path=path, must=must, got=got, **fix)


def environment_named(stack: str, folder: Path) -> EnvironmentConfig | None:
    """Another environment of the checkout; None where its stack file is missing or has errors."""
    file = stack_files(folder).get(stack)
    return _environment(stack, file, file.stat().st_mtime_ns) if file else None


@cache
def _environment(name: str, file: Path, changed: int) -> EnvironmentConfig | None:
    """The environment of a stack file, which was last changed then."""
    reading = read_file(name, file.parent)
    return reading.config.environment if reading.config and not reading.errors else None


def unsound(team: TeamConfig) -> InputError:
    """Error about a team without a plan: its environment has errors."""
    return InputError(
        path="team.environment",
        must="be an environment whose stack file has no errors",
        got=team.environment,
        fix=f"run trainyard check {team.environment}, and correct what it names",
    )


def _other_environment(folder: Path, first: str = "") -> dict[str, Any]:
    """Propose an environment of the checkout, as `fix` and `write` of an error. `first`: the
    likeliest one."""
    # The program of a component can lie in a folder below that of its project.
    known = environments(folder) if (folder / "Pulumi.yaml").is_file() else []
    known = [first, *known] if first in known else known
    if not known:
        return {
            "fix": "write the stack file of the environment first: Pulumi.dev.yaml; or name the file of its"
            " contract, which `trainyard contract` prints, in team.contract"
        }
    return {"fix": f"write {' or '.join(dict.fromkeys(known))}", "write": known[0]}
