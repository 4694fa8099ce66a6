"""ECR repositories for the images of jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, at


def changed(data: str) -> Graph:
    return deploy(
        "dev", lambda values: at("registries", {"train": {"data": data}})(values[ENVIRONMENT])
    )


@pytest.mark.parametrize(("data", "kept"), [("keep", True), ("delete", False)])
def test_a_repository_goes_with_its_stack_only_where_the_stack_file_says_so(
    data: str, kept: bool
) -> None:
    graph = changed(data)
    repository = graph["aws:ecr/repository:Repository train"]
    assert repository.options.protect is kept and repository.inputs["forceDelete"] is not kept
    assert repository.inputs["name"] == "dev/train"
    assert graph.outputs["registries"].keys() == {"train"}


def test_the_newest_images_stay_where_the_stack_file_says_how_many() -> None:
    assert not changed("keep").starting("aws:ecr/lifecyclePolicy")
    graph = deploy(
        "dev", lambda values: at("registries", {"train": {"keep_images": 30}})(values[ENVIRONMENT])
    )
    inputs = graph["aws:ecr/lifecyclePolicy:LifecyclePolicy train"].inputs
    [rule] = json.loads(inputs["policy"])["rules"]
    assert inputs["repository"] == "dev/train" and rule["action"] == {"type": "expire"}
    assert rule["selection"]["countNumber"] == 30 and rule["selection"]["tagStatus"] == "any"


def test_a_tag_is_never_moved_to_another_image() -> None:
    inputs: dict[str, Any] = changed("keep")["aws:ecr/repository:Repository train"].inputs
    assert inputs["imageTagMutability"] == "IMMUTABLE" and inputs["imageScanningConfiguration"] == {
        "scanOnPush": True
    }
