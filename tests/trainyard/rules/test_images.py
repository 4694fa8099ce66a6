"""An image is judged by the grammar of references."""

from __future__ import annotations

import pytest

from trainyard.problems import At
from trainyard.rules.images import image_errors, is_untagged, sample_warnings

DIGEST = "sha256:" + "0a" * 32
PULLED = [
    "python",
    "python:3.12",
    "library/python",
    "registry:5000/team/train:v1.2-rc_3",
    "Registry.example.com/train",
    "[2001:db8::1]:5000/train:1",
    "localhost/a",
    "a/b__c/d.e/f--g",
    f"a/b@{DIGEST}",
    f"123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/dev/train:1@{DIGEST}",
    "a:" + "t" * 128,
    "/".join(["a" * 63] * 3),
]
NOT_PULLED = [
    "",
    " a:1",
    "a:1\n",
    "a b",
    "a/B:1",
    "a//b",
    "/a",
    "a/",
    "a:",
    "a@sha256:0a",
    f"a@{DIGEST.upper()}",
    "a@md5:" + "0" * 32,
    "a:-1",
    "a:" + "t" * 129,
    "a:1:2",
    "-a/b",
    "a-/b",
    "a_-b",
    "a.b-/c",
    "registry:port/a",
    "${REGISTRY}/a:1",
    "{{ .Values.image }}",
    "<your-registry>/a:1",
    "docker://a:1",
    "é/a",
    "0a" * 32,
    "/".join(["a" * 63] * 5),
    "a" * 5000,
]


@pytest.mark.parametrize("image", PULLED)
def test_a_reference_of_the_grammar_is_accepted(image: str) -> None:
    assert list(image_errors(image, At("image"))) == []


@pytest.mark.parametrize("image", NOT_PULLED)
def test_what_no_runtime_can_pull_is_refused(image: str) -> None:
    [error] = image_errors(image, At("image"))
    words = (
        *(
            "be the name of an image",
            "be in small letters, but for the tag",
            "have one tag",
            "have 64 hex digits behind @sha256:",
        ),
        *("have no blank in it", "have a tag behind its colon", "have a name between its slashes"),
    )
    assert error.must.startswith(words) and len(str(error)) < 400


@pytest.mark.parametrize(
    ("image", "meant"),
    [(" a:1 ", "a:1"), ("docker://A/B:1", "a/b:1"), ("Team_A/b:1", "team_a/b:1"), ("a/B", None)],
)
def test_the_fix_of_a_slip_is_the_image_that_was_meant(image: str, meant: str | None) -> None:
    [error] = image_errors(image, At("image"))
    assert error.write == meant and (meant is None or meant in error.fix)


def test_a_port_is_no_tag() -> None:
    assert is_untagged("registry:5000/a") and not is_untagged("registry:5000/a:1")
    assert not is_untagged("") and not is_untagged("a:")


def test_an_image_of_the_samples_that_no_registry_has_is_named() -> None:
    [said] = sample_warnings("trainyard/torch-cpu:1", At("image"))
    assert (
        "no registry has it: before `pulumi up` on AWS write the image that your nodes pull"
        in said.text
    )
    for image in ("registry.example.com/trainyard/torch-cpu:1", "pytorch/pytorch:2.9.1"):
        assert [*sample_warnings(image, At("image"))] == []
