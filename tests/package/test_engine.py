"""Programs that use the package, by the real engine and the plugins of AWS and EKS, against an embedded
account: one in YAML, and one in Python that has folders named stacks/ and components/ of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from development import engine
from package.outer import LINK
from package.schema import ENVIRONMENT
from rehearsal import paths
from tests.support.alone import Alone, alone
from tests.support.recording import CHECKOUT, stack_values
from tests.support.stackfile import ENVIRONMENT as SETTINGS

YAML = "pulumi-language-yaml"
pytestmark = [
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
    pytest.mark.skipif(
        not (paths.BIN / YAML).exists(),
        reason=f"needs {YAML}: `python -m rehearsal build --also {YAML}` builds it",
    ),
]
DEV: dict[str, Any] = stack_values("dev")[SETTINGS]
REGION = "ap-northeast-2"
PROGRAM = """
import json
from pathlib import Path

import pulumi

from components.mine import SIZE
from stacks.mine import region


class Environment(pulumi.ComponentResource):
    vpc_id: pulumi.Output[str]
    claims: pulumi.Output[dict[str, str]]

    def __init__(self, name, settings):
        outputs = {"vpc_id": None, "claims": None, "kubeconfig": None}
        super().__init__("trainyard:index:Environment", name, settings | outputs, remote=True)


assert SIZE == "mine" and region() == "mine"
made = Environment("platform", json.loads(Path("settings.json").read_text()))
pulumi.export("vpc", made.vpc_id)
pulumi.export("claims", made.claims)
pulumi.export("kubeconfig", made.kubeconfig)
"""


class Program:
    """A program that uses the package, in a folder of its own."""

    def __init__(self, place: Alone, name: str, project: dict[str, Any]) -> None:
        self.place, self.name, self.folder = place, name, place.checkout.parent / name
        self.folder.mkdir()
        self.write(project)
        (self.folder / "Pulumi.dev.yaml").write_text(f"config: {{'aws:region': {REGION}}}\n")
        status, said = self.pulumi("stack", "init", "dev")
        assert status == 0, said

    def write(self, project: dict[str, Any]) -> None:
        """Write Pulumi.yaml."""
        (self.folder / "Pulumi.yaml").write_text(yaml.safe_dump({"name": self.name, **project}))

    def pulumi(self, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            [paths.BIN / "pulumi", *words, "--non-interactive"],
            cwd=self.folder,
            env=engine.complete(self.place.stack),
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def said(self, *words: str) -> str:
        status, said = self.pulumi(*words, "--stack", "dev")
        assert status == 0, said
        return said

    def state(self) -> list[dict[str, Any]]:
        deployment = json.loads(self.said("stack", "export"))["deployment"]
        return deployment.get("resources", [])


@pytest.fixture(scope="module")
def place() -> Iterator[Alone]:
    with alone("dev") as made:
        engine.prepare(made.stack, lambda _: None)
        yield made


def in_yaml(place: Alone, settings: dict[str, Any]) -> dict[str, Any]:
    """Pulumi.yaml of a program in YAML, which interpolates ${…}."""
    outputs = ("vpc_id", "claims", "kubeconfig")
    given = json.loads(json.dumps(settings).replace("${", "$${"))
    return {
        "runtime": "yaml",
        "packages": {"trainyard": str(place.checkout / "package")},
        "resources": {"platform": {"type": "trainyard:Environment", "properties": given}},
        "outputs": {each.removesuffix("_id"): f"${{platform.{each}}}" for each in outputs},
    }


def python_program(place: Alone, name: str, settings: dict[str, Any]) -> Program:
    package = {"name": "trainyard", "path": str(place.checkout / "package")}
    program = Program(
        place,
        name,
        {
            "runtime": {"name": "python", "options": {"virtualenv": str(CHECKOUT / ".venv")}},
            "plugins": {"providers": [package]},
        },
    )
    own = {
        "__main__.py": PROGRAM,
        "settings.json": json.dumps(settings),
        "stacks/mine.py": "def region(): return 'mine'\n",
        "components/mine.py": "SIZE = 'mine'\n",
    }
    for file, text in own.items():
        (program.folder / file).parent.mkdir(exist_ok=True)
        (program.folder / file).write_text(text)
    return program


def shape(found: list[dict[str, Any]]) -> set[tuple[str, str, str]]:
    """Type, name and owner of each resource, as if the component were the stack; without providers of
    the engine's own."""
    named = {each["urn"]: (each["type"], each["urn"].rpartition("::")[2]) for each in found}
    own = {
        urn: (kind, name)
        for urn, (kind, name) in named.items()
        if kind not in ("pulumi:pulumi:Stack", ENVIRONMENT) and not name.startswith("default")
    }
    return {
        (*own[each["urn"]], "::".join(own.get(each.get("parent", ""), ("",))))
        for each in found
        if each["urn"] in own
    }


def test_a_program_makes_what_the_stack_file_makes_and_in_another_language_changes_nothing(
    place: Alone,
) -> None:
    program = python_program(place, "mine", DEV)
    program.said("up", "--yes", "--skip-preview")
    mine = shape(program.state())
    golden = json.loads((CHECKOUT / "tests/golden/dev.graph.json").read_text())
    wanted = {(each["type"], each["name"]) for each in golden}
    # pulumi-eks makes the parts of its own component, which a golden does not have.
    assert wanted <= {each[:2] for each in mine}
    assert {each for each in mine if each[:2] not in wanted and "eks" not in each[2]} == set()
    parents = {(each["type"], each["name"]): each.get("parent", "") for each in golden}
    assert {each for each in mine if each[:2] in parents} == {
        (*each, "::".join(parent.rsplit(" ", 1)) if parent else "")
        for each, parent in parents.items()
    }
    _changes_nothing(program)

    program.write(in_yaml(place, DEV))
    _changes_nothing(program)
    program.said("destroy", "--yes", "--skip-preview")
    assert [each["type"] for each in program.state()] in ([], ["pulumi:pulumi:Stack"])
    assert place.left() == []


def _changes_nothing(program: Program) -> None:
    """Nor does it tell another thing than the stack file's outputs."""
    told = json.loads(program.said("stack", "output", "--json"))
    assert told["vpc"].startswith("vpc-") and {*told["claims"]} == {"scratch", "home"}
    assert told["kubeconfig"] == "[secret]"
    assert (program.folder / LINK).is_symlink()
    assert "unchanged" in program.said("preview", "--expect-no-changes")


def test_every_fault_is_one_message_of_the_preview(place: Alone) -> None:
    settings = {**DEV, "zone": "ap-northeast-2z", "pools": {"g6e": {"instance_types": []}}}
    program = python_program(place, "wrong", settings)
    status, said = program.pulumi("preview", "--stack", "dev")
    assert status != 0 and "AttributeError" not in said, said
    assert "zone: must be a zone" in said and "pools.g6e.max_nodes: must be" in said, said
    assert not (program.folder / LINK).exists()
