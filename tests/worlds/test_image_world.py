"""A folder becomes the image of a job by one word, and the nodes pull it by its digest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

EMPTY = with_l4(registries={"train": {"data": "delete"}})
JOB = {
    "runtime": "torch-distributed",
    "nodes": 1,
    "pool": "l4",
    "image": "registry.example.com/nowhere:1",
    "command": ["bash", "-c", "echo it runs"],
    "shared_memory_gib": 8,
    "allow_no_checkpoint": True,
    "wait": "complete",
}


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    files = {"Pulumi.pushed.yaml": yaml.safe_dump({"config": EMPTY})}
    with rehearsing("pushed", files) as made:
        yield made


def _push_base(harness: Harness, folder: Path) -> str:
    """An image of one file in the repository, as a person pushes it with crane; its name."""
    (folder / "config").mkdir()
    token = "$(aws ecr get-authorization-token --query 'authorizationData[0].authorizationToken')"
    host = harness.shell('echo "${AWS_ENDPOINT_URL#http://}"').strip()
    harness.shell(
        f'echo {{\\"auths\\": {{\\"{host}\\": {{\\"auth\\": {token}}}}}}} > {folder}/config/config.json'
    )
    (folder / "base.txt").write_text("base\n")
    harness.shell(f"tar --create --file {folder}/base.tar --directory {folder} base.txt")
    name = f"{host}/pushed/train:base"
    harness.shell(
        f"DOCKER_CONFIG={folder}/config crane append --new_layer {folder}/base.tar --new_tag {name}"
    )
    return name


def test_a_folder_is_pushed_and_its_digest_is_what_the_job_runs(
    harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert harness.do("up", "--stack", "pushed") == 0, harness.log.read_text()
    base = _push_base(harness, tmp_path)
    (tmp_path / "train").mkdir()
    (tmp_path / "train/train.py").write_text("print(1)\n")
    (tmp_path / "train/Dockerfile").write_text(f"FROM {base}\nCOPY train.py /workspace/\n")
    file = harness.checkout / "Pulumi.pushed.yaml"
    wanted = json.loads(json.dumps(EMPTY))
    wanted["trainyard:environment"]["jobs"] = {"mine": JOB}
    file.write_text(yaml.safe_dump({"config": wanted}))

    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config"))
    asked = ("--job", "mine", "--from", str(tmp_path / "train"), "--yes")
    assert harness.tool("image", "--stack", "pushed", *asked) == 0, harness.log.read_text()
    image = yaml.safe_load(file.read_text())["config"]["trainyard:environment"]["jobs"]["mine"][
        "image"
    ]
    assert "/pushed/train@sha256:" in image
    assert harness.do("up", "--stack", "pushed") == 0, harness.log.read_text()
    [pod] = harness.get("pods --namespace training --selector jobset.sigs.k8s.io/jobset-name=mine")[
        "items"
    ]
    assert pod["spec"]["containers"][0]["image"] == image
    assert pod["status"]["phase"] == "Succeeded"


def test_the_token_is_in_no_log(harness: Harness) -> None:
    said = harness.log.read_text()
    token = harness.shell(
        "aws ecr get-authorization-token --query 'authorizationData[0].authorizationToken' --output text"
    )
    assert token.strip() not in said and '"auth"' not in said
