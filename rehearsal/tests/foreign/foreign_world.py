"""A world of its own for programs that are not ours, and Terraform with the genuine AWS provider in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rehearsal import paths, world

PROVIDERS = Path(os.environ.get("TERRAFORM_PROVIDERS") or "/opt/tf-plugins")
"""A mirror of Terraform providers, as `terraform providers mirror` makes one."""
PROVIDER = "registry.terraform.io/hashicorp/aws"
ALONE = "TF_CLI_CONFIG_FILE=/dev/null TF_IN_AUTOMATION=1 terraform"
"""Terraform that reads no file of the person who runs it."""
GONE = ("deleted", "terminated")
MINUTES = 10
"""How long one command may take."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A world of its own, and a shell with what `python -m rehearsal env` prints."""

    state: Path
    project: Path
    """A copy of the program's folder."""
    region: str

    def rehearsal(self, *words: str) -> str:
        """A word of the rehearsal, from a folder that is not this checkout's."""
        return self._run([sys.executable, "-m", "rehearsal", *words], self._environment)

    def shell(self, command: str) -> str:
        """A command line in the program's folder; what it prints."""
        told = f'eval "$({sys.executable} -m rehearsal env --region {self.region})"; {command}'
        return self._run(["/bin/bash", "-c", told], self._environment)

    def left(self) -> list[str]:
        """What of the account costs money or is in somebody's way."""
        told = json.loads(self.rehearsal("inventory", "--json"))
        return [f"{one['type']} {one['id']}" for one in told if one["state"] not in GONE]

    @property
    def _environment(self) -> dict[str, str]:
        return world.environment() | {
            "TRAINYARD_REHEARSAL": str(self.state),
            "PYTHONPATH": str(paths.HOME),
        }

    def _run(self, command: list[str], environment: dict[str, str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MINUTES * 60,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def missing_of_terraform() -> str:
    """Why the machine cannot run Terraform with the genuine provider."""
    if not shutil.which("terraform"):
        return "terraform is not on PATH"
    if not (PROVIDERS / PROVIDER).is_dir():
        return f"{PROVIDER} is not in {PROVIDERS}: set TERRAFORM_PROVIDERS to a mirror that has it"
    return ""
