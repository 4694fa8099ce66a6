"""Programs that are not ours come up in the world: one of Pulumi, and the same for Terraform with the
genuine AWS provider."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal import world
from rehearsal.tests.foreign.foreign_world import ALONE, PROVIDERS, World, missing_of_terraform

HERE = Path(__file__).parent
REGION = "us-west-2"

pytestmark = [
    pytest.mark.world,
    pytest.mark.apart,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]


@pytest.fixture
def foreign(request: pytest.FixtureRequest) -> Iterator[World]:
    """The world is up, and the folder that the test names is copied. Short paths, since Unix sockets
    want them."""
    folder = Path(tempfile.mkdtemp(prefix="foreign-", dir="/tmp"))
    shutil.copytree(HERE / request.param, folder / "p")
    made = World(state=folder / "s", project=folder / "p", region=REGION)
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


@pytest.mark.skipif(missing_of_terraform() != "", reason=missing_of_terraform())
@pytest.mark.parametrize("foreign", ["terraform"], indirect=True)
def test_terraform_with_the_genuine_provider_comes_up_and_goes(foreign: World) -> None:
    told = f'-no-color -input=false -var region={REGION} -var "charts=$REHEARSAL_CHARTS"'
    foreign.shell(f"{ALONE} init -no-color -input=false -plugin-dir={PROVIDERS}")
    foreign.shell(f"{ALONE} apply -auto-approve {told}")
    assert said_by_the_pod(foreign) == "hello\n"
    foreign.shell(f"{ALONE} plan -detailed-exitcode {told}")  # 2 where something would change
    assert foreign.left() != []
    foreign.shell(f"{ALONE} destroy -auto-approve {told}")
    assert foreign.left() == []
    foreign.rehearsal("down")
