"""`trainyard image`: a folder becomes an image, ECR's digest of it becomes the job's image."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from tests.rehearsal.aws_world import Account, served, speak_to
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.terminal import Terminal
from tests.trainyard.operations.test_words import STACK_FILE
from trainyard.operations.images import builders, image

CRANE = shutil.which("crane", path=f"{paths.BIN}:{os.environ['PATH']}")
WITH_REGISTRY = STACK_FILE.replace(
    "    storage:\n", "    registries: {train: {data: delete}}\n    storage:\n"
).partition("      theirs:")[0]
RECORDS = (
    f"#!{sys.executable}\n"
    + """\
import json, os, pathlib, sys
config = pathlib.Path(os.environ.get("DOCKER_CONFIG", "/nowhere"), "config.json")
file = sys.argv[sys.argv.index("--authfile") + 1] if "--authfile" in sys.argv else config
shown = pathlib.Path(file).read_text() if pathlib.Path(file).exists() else ""
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps({"argv": [pathlib.Path(sys.argv[0]).name, *sys.argv[1:]], "file": shown,
                            "host": os.environ.get("DOCKER_HOST", "")}) + "\\n")
if sys.argv[1:3] == ["context", "inspect"]:
    print("unix:///run/user/1000/docker.sock")
sys.exit(int(os.environ.get("FAILS") == sys.argv[1]))
"""
)


class Machine:
    """The programs of a machine, each of which only writes down how it was called."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.bin, self.log, self._patch = folder / "bin", folder / "calls", patch
        self.bin.mkdir()
        patch.setenv("PATH", str(self.bin))
        patch.setenv("CALLS", str(self.log))
        patch.setenv("HOME", str(folder))
        patch.delenv("DOCKER_CONFIG", raising=False)

    def has(self, *programs: str) -> None:
        for program in programs:
            (self.bin / program).write_text(RECORDS)
            (self.bin / program).chmod(0o755)

    def fails(self, word: str) -> None:
        self._patch.setenv("FAILS", word)

    def calls(self) -> list[dict[str, Any]]:
        found = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in found]

    def ran(self) -> list[str]:
        return [" ".join(call["argv"][:2]) for call in self.calls()]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def folder(at: Path, *lines: str) -> Path:
    (at / "train").mkdir(exist_ok=True)
    (at / "train/train.py").write_text("print(1)\n")
    (at / "train/Dockerfile").write_text("\n".join(lines))
    return at / "train"


RUNS = ("FROM registry.example.com/torch:2", "RUN pip install einops")
COPIES = ("FROM registry.example.com/torch:2", "COPY train.py /workspace/", "WORKDIR /workspace")
TO = builders.Registry(host="123.dkr.example.com", encrypted=True, auth="c2VjcmV0LXRva2Vu")


def pushed(at: Path, to: builders.Registry = TO) -> None:
    made = builders.Image(folder=at, name=f"{to.host}/dev/train:one", platform="linux/amd64")
    builders.builder_for(at).push(made, to)


# Which program builds.


def test_without_root_comes_first_and_a_daemon_that_does_not_run_is_passed_over(
    machine: Machine, tmp_path: Path
) -> None:
    machine.has("docker", "buildah", "podman")
    assert builders.builder_for(folder(tmp_path, *RUNS)).program == "podman"
    (machine.bin / "podman").unlink()
    assert builders.builder_for(folder(tmp_path, *RUNS)).program == "buildah"
    machine.fails("info")
    with pytest.raises(builders.CannotBuild, match="docker: exit code 1"):
        builders.builder_for(folder(tmp_path, *RUNS))


def test_a_base_and_some_files_need_no_daemon(machine: Machine, tmp_path: Path) -> None:
    machine.has("docker", "crane")
    assert builders.builder_for(folder(tmp_path, *COPIES)).program == "crane"
    assert builders.builder_for(folder(tmp_path, *RUNS)).program == "docker"


def test_a_machine_without_a_builder_is_told_the_way_out(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(builders.CannotBuild) as said:
        builders.builder_for(folder(tmp_path, *RUNS))
    assert "podman: not on PATH" in str(said.value) and "RUN runs in a container" in str(said.value)
    assert "Fix: install podman" in str(said.value) and "crane on PATH" not in str(said.value)
    with pytest.raises(builders.CannotBuild, match="or put crane on PATH, which needs no daemon"):
        builders.builder_for(folder(tmp_path, *COPIES))


def test_a_folder_without_a_dockerfile_is_told_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(builders.CannotBuild, match="FROM <image>"):
        builders.builder_for(tmp_path)


# What it is told.


@pytest.mark.parametrize(
    ("program", "ran"),
    [
        ("podman", ["podman info", "podman build", "podman push"]),
        ("buildah", ["buildah info", "buildah build", "buildah push"]),
        ("docker", ["docker info", "docker build", "docker context", "docker push"]),
        ("crane", ["crane config", "crane mutate"]),
    ],
)
def test_the_token_is_in_a_file_of_the_push_and_in_no_argument(
    program: str, ran: list[str], machine: Machine, tmp_path: Path
) -> None:
    machine.has(program)
    pushed(folder(tmp_path, *(COPIES if program == "crane" else RUNS)))
    assert machine.ran() == ran
    assert TO.auth not in json.dumps([call["argv"] for call in machine.calls()])
    [*before, push] = machine.calls()
    assert json.loads(push["file"])["auths"][TO.host] == {"auth": TO.auth}
    assert not any(TO.auth in call["file"] for call in before)
    assert not list(tmp_path.glob("trainyard-*"))


def test_docker_pushes_with_the_daemon_that_built(machine: Machine, tmp_path: Path) -> None:
    machine.has("docker")
    pushed(folder(tmp_path, *RUNS))
    assert machine.calls()[-1]["host"] == "unix:///run/user/1000/docker.sock"


def test_the_base_is_pulled_with_the_persons_own_credentials(
    machine: Machine, tmp_path: Path
) -> None:
    own = {"auths": {"registry.example.com": {}}, "credsStore": "desktop"}
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text(json.dumps(own))
    machine.has("crane")
    pushed(folder(tmp_path, *COPIES))
    config = json.loads(machine.calls()[-1]["file"])
    assert config["credHelpers"] == {"registry.example.com": "desktop"}
    assert config["auths"][TO.host] == {"auth": TO.auth}
    assert json.loads((tmp_path / ".docker/config.json").read_text()) == own


def test_words_with_commas_reach_crane_whole(machine: Machine, tmp_path: Path) -> None:
    machine.has("crane")
    pushed(folder(tmp_path, *COPIES, 'CMD ["run", "a,b", "say \\"c\\""]', "ENV A=1,2"))
    words = machine.calls()[-1]["argv"]
    assert words[words.index("--cmd") + 1] == 'run,"a,b","say ""c"""'
    assert words[words.index("--env") + 1] == "A=1,2"
    assert words[words.index("--platform") + 1] == "linux/amd64"


@pytest.mark.parametrize(
    ("says", "made"),
    [
        ('{"os": "linux", "architecture": "arm64"}', False),
        ('{"os": "linux", "architecture": "amd64"}', True),
        ('{"os": "", "architecture": ""}', True),  # of `crane append`
        ("", True),  # mutate says why
    ],
)
def test_a_base_of_other_cpus_is_no_image_of_the_job(
    says: str, made: bool, machine: Machine, tmp_path: Path
) -> None:
    """Such as one that was built on a Mac: crane takes it, and no node starts it."""
    crane = machine.bin / "crane"
    crane.write_text(
        f"#!/bin/sh\necho $1 >> {machine.log}\nif [ $1 = config ]; then echo '{says}'; fi"
    )
    crane.chmod(0o755)
    if made:
        pushed(folder(tmp_path, *COPIES))
    else:
        with pytest.raises(builders.CannotBuild) as said:
            pushed(folder(tmp_path, *COPIES))
        assert str(said.value).startswith(
            "registry.example.com/torch:2 is for linux/arm64, and the job's nodes are linux/amd64. Fix: "
        )
    assert machine.log.read_text().split() == ["config", "mutate"][: 1 + made]


def test_a_base_in_the_registry_of_the_push_is_looked_at_with_its_token(
    machine: Machine, tmp_path: Path
) -> None:
    machine.has("crane")
    pushed(folder(tmp_path, f"FROM {TO.host}/dev/train:base", *COPIES[1:]))
    [config, _] = machine.calls()
    assert json.loads(config["file"])["auths"][TO.host] == {"auth": TO.auth}


def test_a_registry_without_encryption_is_said_to_podman_only_there(
    machine: Machine, tmp_path: Path
) -> None:
    machine.has("podman")
    pushed(folder(tmp_path, *RUNS))
    assert "--tls-verify=false" not in machine.calls()[-1]["argv"]
    pushed(folder(tmp_path, *RUNS), replace(TO, encrypted=False))
    assert "--tls-verify=false" in machine.calls()[-1]["argv"]


# The word.


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    """An account with the repository of the stack, in whose folder one is."""
    (state := tmp_path / "state").mkdir()
    with served(state, monkeypatch) as found:
        paths.remember(replace(paths.world(), account_port=int(found.url.rpartition(":")[2])))
        found.client("ecr").create_repository(
            repositoryName="dev/train", imageTagMutability="IMMUTABLE"
        )
        speak_to(found, monkeypatch)
        (tmp_path / "Pulumi.dev.yaml").write_text(WITH_REGISTRY)
        (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
        monkeypatch.chdir(tmp_path)
        yield found


def run(at: Path, *words: str) -> int:
    return run_word("image", ["--stack", "dev", "--job", "mine", "--from", str(at), *words])


@pytest.mark.skipif(CRANE is None, reason="python -m rehearsal build --also crane")
def test_a_folder_becomes_the_image_of_a_job_by_its_digest(
    account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    """With the genuine crane, from a base that lies in the same registry."""
    monkeypatch.setenv("PATH", f"{Path(str(CRANE)).parent}:{os.environ['PATH']}")
    host = account.url.removeprefix("http://")
    tokens = account.client("ecr").get_authorization_token()["authorizationData"]
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text(
        json.dumps({"auths": {host: {"auth": tokens[0]["authorizationToken"]}}})
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    tar = shutil.make_archive(str(tmp_path / "base"), "tar", CHECKOUT / "workloads/ddp")
    base = f"{host}/dev/train:base"
    words = [str(CRANE), "append", "--new_layer", tar, "--new_tag", base]
    subprocess.run(words, check=True, capture_output=True)

    here = folder(tmp_path, f"FROM {base}", "COPY train.py /workspace/", "WORKDIR /workspace")
    assert run(here, "--yes") == 0
    changed = (tmp_path / "Pulumi.dev.yaml").read_text()
    ecr = account.client("ecr")
    images = ecr.describe_images(repositoryName="dev/train")["imageDetails"]
    [made] = [each for each in images if each["imageTags"][0].startswith("mine-")]
    url = ecr.describe_repositories()["repositories"][0]["repositoryUri"]
    assert changed == WITH_REGISTRY.replace(
        "registry.example.com/train:1", f"{url}@{made['imageDigest']}"
    )
    said = "".join(capfd.readouterr())
    assert "make up STACK=dev, which starts the job anew" in said
    for shown in ecr.get_authorization_token()["authorizationData"]:
        password = base64.b64decode(shown["authorizationToken"]).decode().partition(":")[2]
        assert password not in said

    asked = ecr.batch_get_image(
        repositoryName="dev/train", imageIds=[{"imageDigest": made["imageDigest"]}]
    )["images"]
    manifest = json.loads(asked[0]["imageManifest"])
    assert len(manifest["layers"]) == 2, "the base's and ours"


def test_a_push_that_fails_leaves_the_file_alone(
    account: Account, machine: Machine, tmp_path: Path, capsys: Any
) -> None:
    machine.has("podman")
    machine.fails("push")
    assert run(folder(tmp_path, *RUNS), "--yes") == 1
    said = capsys.readouterr().err
    assert "podman push ended with 1; its reason is above" in said
    assert said.endswith("The stack file was not changed.\n")
    assert (tmp_path / "Pulumi.dev.yaml").read_text() == WITH_REGISTRY


@pytest.mark.parametrize(
    "edited", ["config: {", WITH_REGISTRY.replace("      mine:", "      ours:")]
)
def test_an_image_is_named_where_the_file_was_edited_during_the_build(
    edited: str,
    account: Account,
    machine: Machine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    """A build takes minutes."""

    def build(*_: object) -> str:
        (tmp_path / "Pulumi.dev.yaml").write_text(edited)
        return "123.dkr.example.com/dev/train@sha256:0f"

    machine.has("podman")
    monkeypatch.setattr(image, "_pushed", build)
    assert run(folder(tmp_path, *RUNS), "--yes") == 1
    assert capsys.readouterr().err.endswith(
        "\n123.dkr.example.com/dev/train@sha256:0f is pushed. The stack file was not changed.\n"
    )
    assert (tmp_path / "Pulumi.dev.yaml").read_text() == edited


@pytest.mark.parametrize("setting", ["allowedAccountIds", "forbiddenAccountIds"])
def test_nothing_is_pushed_into_an_account_that_the_stack_file_refuses(
    setting: str, account: Account, machine: Machine, tmp_path: Path, capsys: Any
) -> None:
    """The first line names the account of the stack file, and another one of the shell got the image."""
    machine.has("podman")
    caller = account.client("sts").get_caller_identity()["Account"]
    named = "999999999999" if setting == "allowedAccountIds" else caller
    text = WITH_REGISTRY.replace("  aws:region:", f'  aws:{setting}: ["{named}"]\n  aws:region:')
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    assert run(folder(tmp_path, *RUNS), "--yes") == 1
    assert capsys.readouterr().err == (
        f"aws:{setting}: must allow the account of the caller, {caller}; got {named}. Fix: log in to another account,"
        f" or change aws:{setting}\nThe stack file was not changed.\n"
    )
    assert machine.ran() == ["podman info"]


def test_nothing_is_built_without_a_yes(
    account: Account, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    machine.has("podman")
    Terminal(monkeypatch, answer="n")
    assert run(folder(tmp_path, *RUNS)) == 3
    said = capsys.readouterr().out
    assert machine.ran() == ["podman info"] and "Nothing was built" in said
    assert (
        "which podman makes of" in said and "for linux/amd64 and pushes to dev/train:mine-" in said
    )


REFUSED = {
    "no registry in the environment": (
        lambda text: text.replace("    registries: {train: {data: delete}}\n", ""),
        (),
        "add registries: {train: {}} to environment",
    ),
    "several registries": (
        lambda text: text.replace("{train: {data: delete}}", "{train: {}, other: {}}"),
        (),
        "several are there. Fix: name one by --registry: train, other",
    ),
    "another registry": (lambda text: text, ("--registry", "x"), "there is no registry x"),
    "no such job": (
        lambda text: text.replace("mine:  #", "yours:  #"),
        (),
        "no job mine that is described there. Fix: --job yours",
    ),
    "a line of two jobs": (
        lambda text: (
            text.replace("mine:  # the first try", "mine: &a")
            + "      other: {<<: *a, checkpoints: {store: scratch, directory: other}}\n"
        ),
        (),
        "is a line of other jobs, too",
    ),
    "a file with errors": (
        lambda text: text.replace("nodes: 2", "nodes: two"),
        (),
        "1 error in the stack file",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_written_is_said_before_anything_is_built(
    case: str, account: Account, machine: Machine, tmp_path: Path, capsys: Any
) -> None:
    machine.has("podman")
    change, words, says = REFUSED[case]
    (tmp_path / "Pulumi.dev.yaml").write_text(change(WITH_REGISTRY))
    assert run(folder(tmp_path, *RUNS), "--yes", *words) == 1
    said = capsys.readouterr().err
    assert says in said and "Nothing was built, and nothing was changed." in said
    assert machine.calls() == []


def test_a_repository_that_no_update_has_made_is_said(
    account: Account, machine: Machine, tmp_path: Path, capsys: Any
) -> None:
    machine.has("podman")
    account.client("ecr").delete_repository(repositoryName="dev/train")
    assert run(folder(tmp_path, *RUNS), "--yes") == 1
    said = capsys.readouterr().err
    assert "there is no repository dev/train yet. Fix: delete job " in said
    assert "Then update the environment, which makes the repository, add the job again" in said
    assert machine.ran() == ["podman info"]
