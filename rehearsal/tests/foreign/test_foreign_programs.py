"""Programs that are not ours come up in the world: one of Pulumi, and the same for Terraform with the
genuine AWS provider."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rehearsal import paths, world

HERE = Path(__file__).parent
REGION = "us-west-2"
PROVIDERS = Path(os.environ.get("TERRAFORM_PROVIDERS") or "/opt/tf-plugins")
"""A mirror of Terraform providers, as `terraform providers mirror` makes one."""
PROVIDER = "registry.terraform.io/hashicorp/aws"
GONE = ("deleted", "terminated")
MINUTES = 10
"""How long one command may take."""

pytestmark = [
    pytest.mark.world,
    pytest.mark.apart,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]


@dataclass(frozen=True, kw_only=True)
class World:
    """A world of its own, and a shell with what `python -m rehearsal env` prints."""

    state: Path
    project: Path
    """A copy of the program's folder."""

    def rehearsal(self, *words: str) -> str:
        """A word of the rehearsal, from a folder that is not this checkout's."""
        return self._run([sys.executable, "-m", "rehearsal", *words], self._environment)

    def shell(self, command: str) -> str:
        """A command line in the program's folder; what it prints."""
        told = f'eval "$({sys.executable} -m rehearsal env --region {REGION})"; {command}'
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


@pytest.fixture
def foreign(request: pytest.FixtureRequest) -> Iterator[World]:
    """The world is up, and the folder that the test names is copied. Short paths, since Unix sockets
    want them."""
    folder = Path(tempfile.mkdtemp(prefix="foreign-", dir="/tmp"))
    shutil.copytree(HERE / request.param, folder / "p")
    made = World(state=folder / "s", project=folder / "p")
    made.rehearsal("up")
    try:
        yield made
    finally:
        made.rehearsal("down", "--force")
        shutil.rmtree(folder)


def said_by_the_pod(made: World) -> str:
    made.shell(f"aws eks update-kubeconfig --region {REGION} --name shop")
    [node] = made.shell(
        "kubectl get nodes --selector karpenter.sh/nodepool=gpu"
        r" --output custom-columns='T:.metadata.labels.node\.kubernetes\.io/instance-type' --no-headers"
    ).split()
    assert node == "g6.xlarge"
    return made.shell("kubectl logs pod/hello")


@pytest.mark.parametrize("foreign", ["pulumi"], indirect=True)
def test_a_pulumi_program_of_somebody_else_comes_up_and_goes(foreign: World) -> None:
    (foreign.project / ".venv").symlink_to(sys.prefix)  # Pulumi.yaml names it
    foreign.shell("pulumi stack init dev --non-interactive")
    foreign.shell(
        f'pulumi config set aws:region {REGION} && pulumi config set charts "$REHEARSAL_CHARTS"'
    )
    foreign.shell("pulumi up --yes --skip-preview --non-interactive")
    assert said_by_the_pod(foreign) == "hello\n"
    foreign.shell("pulumi preview --expect-no-changes --non-interactive")
    foreign.shell("pulumi refresh --yes --skip-preview --expect-no-changes --non-interactive")
    assert foreign.left() != []
    foreign.shell("pulumi destroy --yes --skip-preview --non-interactive")
    assert foreign.left() == []
    foreign.rehearsal("down")


def missing_of_terraform() -> str:
    """Why the machine cannot run Terraform with the genuine provider."""
    if not shutil.which("terraform"):
        return "terraform is not on PATH"
    if not (PROVIDERS / PROVIDER).is_dir():
        return f"{PROVIDER} is not in {PROVIDERS}: set TERRAFORM_PROVIDERS to a mirror that has it"
    return ""


@pytest.mark.skipif(missing_of_terraform() != "", reason=missing_of_terraform())
@pytest.mark.parametrize("foreign", ["terraform"], indirect=True)
def test_terraform_with_the_genuine_provider_comes_up_and_goes(foreign: World) -> None:
    told = f'-no-color -input=false -var region={REGION} -var "charts=$REHEARSAL_CHARTS"'
    alone = "TF_CLI_CONFIG_FILE=/dev/null TF_IN_AUTOMATION=1 terraform"
    foreign.shell(f"{alone} init -no-color -input=false -plugin-dir={PROVIDERS}")
    foreign.shell(f"{alone} apply -auto-approve {told}")
    assert said_by_the_pod(foreign) == "hello\n"
    foreign.shell(f"{alone} plan -detailed-exitcode {told}")  # 2 where something would change
    assert foreign.left() != []
    foreign.shell(f"{alone} destroy -auto-approve {told}")
    assert foreign.left() == []
    foreign.rehearsal("down")
