"""The other teams of an environment, as far as their stack files are in the same checkout."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from stacks.settings.environment import TeamConfig
from stacks.settings.reader import read_file


def other_teams(stack: str, environment: str, folder: Path) -> dict[str, TeamConfig]:
    """Name of the stack → its team, of each team of the environment but the stack's own. A stack
    file with errors may be missing: they are its own team's business."""
    teams: dict[str, TeamConfig] = {}
    for file in sorted(folder.glob("Pulumi.*.yaml")):
        name = file.name.removeprefix("Pulumi.").removesuffix(".yaml")
        team = None if name in (stack, environment) else _team(file, file.stat().st_mtime_ns)
        if team and team.environment == environment:
            teams[name] = team
    return teams


@cache
def _team(file: Path, changed: int) -> TeamConfig | None:
    """The team of a stack file, which was last changed then; None for another stack file."""
    if b":team:" not in file.read_bytes():
        return None
    config = read_file(file.name.removeprefix("Pulumi.").removesuffix(".yaml"), file.parent).config
    return config.team if config else None
