"""Programs of somebody else that use the package train a model in a world: one in YAML, and one in Python that
has folders named stacks/ and components/ of its own. Real controllers run the job; then nothing changes, and
nothing is left."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import paths
from rehearsal.tests.foreign.foreign_world import World
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
CONFIG = with_l4(storage={"home": {"efs": {}, "data": "delete"}})
REGION = CONFIG["aws:region"]
SETTINGS: dict[str, Any] = CONFIG["trainyard:environment"]
NAMESPACE = "team-vision"
ALONE = "env --unset PYTHONPATH"
"""Whoever has never seen this checkout has no path to it."""
OPTIONS = "--stack dev --non-interactive"
JOB_SECONDS = 240
"""How long the job may take once `up` has ended."""
TEAM = {
    "environment": "dev",
    "namespace": NAMESPACE,
    "job": {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023",
        "shared_memory_gib": 8,
        "storage": {"home": {"path": "/home/team"}},
        "script": "test -w /home/team && echo trained as ${PET_NODE_RANK:-0}\n",
    },
}
PROGRAM = """
import json
from pathlib import Path

import pulumi

from components.mine import SIZE
from stacks.mine import region


class Environment(pulumi.ComponentResource):
    contract: pulumi.Output[dict]
    access: pulumi.Output[dict]
    cluster_name: pulumi.Output[str]

    def __init__(self, name, settings):
        outputs = {"contract": None, "access": None, "cluster_name": None}
        super().__init__("trainyard:index:Environment", name, settings | outputs, remote=True)


class TrainingJob(pulumi.ComponentResource):
    def __init__(self, name, settings):
        super().__init__("trainyard:index:TrainingJob", name, settings, remote=True)


assert SIZE == "mine" and region() == "mine"
settings, team = json.loads(Path("settings.json").read_text())
platform = Environment("platform", settings)
TrainingJob("vit-base", team | {"contract": platform.contract, "access": platform.access})
pulumi.export("cluster", platform.cluster_name)
"""


def in_yaml(settings: dict[str, Any]) -> dict[str, str]:
    """Files of a program in YAML, which interpolates ${…}."""
    written, team = json.loads(json.dumps([settings, TEAM]).replace("${", "$${"))
    handed = {each: f"${{platform.{each}}}" for each in ("contract", "access")}
    project = {
        "name": "shop-in-yaml",
        "runtime": "yaml",
        "packages": {"trainyard": str(paths.HOME / "package")},
        "resources": {
            "platform": {"type": "trainyard:Environment", "properties": written},
            "vit-base": {"type": "trainyard:TrainingJob", "properties": team | handed},
        },
        "outputs": {"cluster": "${platform.cluster_name}"},
    }
    return {"Pulumi.yaml": yaml.safe_dump(project)}


def in_python(settings: dict[str, Any]) -> dict[str, str]:
    """Files of a program in Python."""
    package = {"name": "trainyard", "path": str(paths.HOME / "package")}
    project = {
        "name": "shop-in-python",
        "runtime": {"name": "python", "options": {"virtualenv": ".venv"}},
        "plugins": {"providers": [package]},
    }
    return {
        "Pulumi.yaml": yaml.safe_dump(project),
        "__main__.py": PROGRAM,
        "settings.json": json.dumps([settings, TEAM]),
        "stacks/mine.py": "def region(): return 'mine'\n",
        "components/mine.py": "SIZE = 'mine'\n",
    }


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A world is up beside it. Short paths, since Unix sockets want them."""
    made = Path(tempfile.mkdtemp(prefix="package-", dir="/tmp"))
    (made / "p").mkdir()
    one = World(state=made / "s", project=made / "p", region=REGION)
    one.rehearsal("build", "--also", "pulumi-language-yaml")
    one.rehearsal("up", "--speed", "240")
    try:
        yield made
    finally:
        one.rehearsal("down", "--force")
        shutil.rmtree(made)


def program(folder: Path, made_by: Any) -> World:
    """A program in a folder of its own, with its stack."""
    made = World(state=folder / "s", project=folder / made_by.__name__, region=REGION)
    made.project.mkdir()
    (made.project / ".venv").symlink_to(sys.prefix)
    charts = made.shell('printf %s "$REHEARSAL_CHARTS"')
    for file, text in made_by({**SETTINGS, "artifacts": {"charts": charts}}).items():
        (made.project / file).parent.mkdir(exist_ok=True)
        (made.project / file).write_text(text)
    made.shell("pulumi stack init dev --no-select --non-interactive")
    made.shell(f"{ALONE} pulumi config set aws:region {REGION} --stack dev")
    return made


def ended(made: World) -> str:
    """Complete or Failed, and the log of the job, once it has ended."""
    name = made.shell("pulumi stack output cluster --stack dev").strip()
    made.shell(f"aws eks update-kubeconfig --region {REGION} --name {name}")
    began, kind = time.monotonic(), "trainjobs.trainer.kubeflow.org"
    path = '{.items[*].status.conditions[?(@.status=="True")].type}'
    while not (said := made.shell(f"kubectl get {kind} -n {NAMESPACE} -o jsonpath='{path}'")):
        assert time.monotonic() - began < JOB_SECONDS, made.shell("kubectl get pods -A")
        time.sleep(2)
    return said + made.shell(
        f"kubectl logs -n {NAMESPACE} -l jobset.sigs.k8s.io/replicatedjob-name=node"
    )


@pytest.mark.parametrize("made_by", [in_yaml, in_python])
def test_a_program_trains_a_model_then_changes_nothing_and_leaves_nothing(
    folder: Path, made_by: Any
) -> None:
    made = program(folder, made_by)
    made.shell(f"{ALONE} pulumi up --yes --skip-preview {OPTIONS}")
    said = ended(made)
    assert said.startswith("Complete") and "trained as 0" in said, said
    made.shell(f"{ALONE} pulumi preview --expect-no-changes {OPTIONS}")
    assert made.left() != []
    made.shell(f"{ALONE} pulumi destroy --yes --skip-preview {OPTIONS}")
    assert made.left() == []
