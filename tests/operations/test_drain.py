"""Every job is ended, and what is left is said."""

from __future__ import annotations

import json

import pytest

from operations import drain


class Kubectl:
    """Two jobs of one kind; `stays` do not end, `mute` says nothing after the deletions."""

    def __init__(self, *stays: str, served: bool = True, mute: bool = False) -> None:
        self.stays, self.served, self.mute, self.asked = (
            stays,
            served,
            mute,
            list[tuple[str, ...]](),
        )

    def __call__(self, *words: str) -> str:
        self.asked.append(words)
        if words[0] == "delete":
            if words[2] in self.stays:
                raise RuntimeError("timed out waiting for the condition")
            return ""
        if not self.served or (self.mute and "--output=name" in words):
            raise RuntimeError("the server doesn't have a resource type")
        if "--output=name" in words:
            return "\n".join(f"trainjob/{name}" for name in self.stays)
        return json.dumps(
            {
                "items": [
                    {"kind": "TrainJob", "metadata": {"namespace": "t", "name": name}}
                    for name in "ab"
                ]
            }
        )


def test_every_job_is_named_and_ended(capsys: pytest.CaptureFixture[str]) -> None:
    kubectl = Kubectl()
    assert drain._end_all(kubectl, drain.KIND) == 0
    assert capsys.readouterr().out == "ends TrainJob t/a\nends TrainJob t/b\n"
    assert [words[2] for words in kubectl.asked if words[0] == "delete"] == ["a", "b"]


def test_one_that_does_not_end_keeps_nobody_else_and_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubectl = Kubectl("a")
    assert drain._end_all(kubectl, drain.KIND) == 1
    assert "still there: trainjob/a\n" in capsys.readouterr().out
    assert [words[2] for words in kubectl.asked if words[0] == "delete"] == ["a", "b"]


def test_a_kind_that_the_cluster_does_not_know_needs_no_end() -> None:
    assert drain._end_all(Kubectl(served=False), drain.KIND) == 0


def test_a_cluster_that_answers_no_more_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert drain._end_all(Kubectl(mute=True), drain.KIND) == 1
    assert f"nobody knows which {drain.KIND}" in capsys.readouterr().out
