"""The table of releases is true, and the changelog says what an update from an older release loses."""

from __future__ import annotations

import json
import re

import pytest

from tests.support.recording import CHECKOUT, Graph
from tests.support.releases import (
    DELETED,
    FOLDER,
    FORGOTTEN,
    HEAD,
    OLDER,
    RELEASES,
    REPLACED,
    Release,
    git,
    lost,
    today,
    told,
)
from trainyard.catalog.versions import TRAINYARD

CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text()
NAMES = [each.name for each in OLDER]


def test_the_newest_release_is_that_of_the_program_and_every_one_has_a_day_in_the_changelog() -> (
    None
):
    sections = dict(re.findall(r"^## (\d\S*) - (\S+)$", CHANGELOG, re.MULTILINE))
    assert {each.name: str(each.day) for each in RELEASES} == sections
    assert RELEASES[-1].name == TRAINYARD
    assert [each.name for each in RELEASES if each.commit == HEAD] in ([], [TRAINYARD])


def test_a_release_without_a_tag_has_everything_in_its_section_of_the_changelog() -> None:
    unreleased = CHANGELOG.partition("## Unreleased\n")[2].partition("\n## ")[0]
    assert RELEASES[-1].commit != HEAD or not unreleased.strip()


def test_every_tag_of_this_clone_is_at_the_commit_of_its_release() -> None:
    tags = git("tag", "--list", "v*").split()
    at_commits = {tag: git("rev-list", "-1", tag).strip() for tag in tags}
    assert at_commits == {each.tag: each.commit for each in OLDER if each.tag in tags}


@pytest.mark.parametrize("release", OLDER, ids=NAMES)
def test_what_is_kept_of_a_release_is_what_its_commit_has(release: Release) -> None:
    git("merge-base", "--is-ancestor", release.commit, HEAD)
    kept = {"Pulumi.dev.yaml": "Pulumi.dev.yaml", "dev.graph.json": "tests/golden/dev.graph.json"}
    assert {file.name for file in (FOLDER / release.name).iterdir()} == kept.keys()
    for name, path in kept.items():
        assert (FOLDER / release.name / name).read_text() == git("show", f"{release.commit}:{path}")


@pytest.mark.parametrize("release", OLDER, ids=NAMES)
def test_the_changelog_names_everything_that_an_update_replaces_or_deletes(
    release: Release,
) -> None:
    assert lost(release.graph, today(release)) == told(release, CHANGELOG)


def test_an_update_over_two_releases_loses_what_each_of_them_names() -> None:
    first, second = (each.name for each in RELEASES[-2:])
    both = "### Upgrading from {}\n\n| `Queue {}` | deleted: no use | why |\n\n### Other\n"
    changelog = both.format(second, "b") + both.format(first, "a")
    assert told(RELEASES[-1], changelog) == {"Queue b": DELETED}
    assert told(RELEASES[-2], changelog) == {"Queue a": DELETED, "Queue b": DELETED}


def test_nothing_is_lost_between_a_program_and_itself(dev: Graph) -> None:
    assert lost(json.loads(dev.golden()), dev) == {}


def test_each_way_to_lose_a_resource_is_seen(dev: Graph) -> None:
    before = {f"{each['type']} {each['name']}": each for each in json.loads(dev.golden())}
    pool = "kubernetes:karpenter.sh/v1:NodePool g6e-pool"
    before[pool]["inputs"]["metadata"]["name"] = "before"
    before["aws:fsx/lustreFileSystem:LustreFileSystem scratch"]["inputs"]["deploymentType"] = "X"
    before["kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob t5-large"]["inputs"]["metadata"][
        "annotations"
    ]["trainyard.io/run"] = "before"
    before["kubernetes:helm.sh/v3:Release karpenter"]["inputs"]["timeout"] = 1
    before |= {
        "aws:sqs/queue:Queue old": {"type": "aws:sqs/queue:Queue", "name": "old"},
        "trainyard:nodes:Old old": {"type": "trainyard:nodes:Old", "name": "old"},
    }
    assert lost(before.values(), dev) == {
        "NodePool g6e-pool": REPLACED,
        "LustreFileSystem scratch": REPLACED,
        "TrainJob t5-large": REPLACED,
        "Queue old": DELETED,
        "Old old": FORGOTTEN,
    }


def test_a_resource_that_moves_below_another_one_must_have_an_alias(dev: Graph) -> None:
    before = {f"{each['type']} {each['name']}": each for each in json.loads(dev.golden())}
    before["kubernetes:helm.sh/v3:Release karpenter"]["parent"] = "trainyard:nodes:Old old"
    with pytest.raises(AssertionError, match="Release karpenter has another parent and no alias"):
        lost(before.values(), dev)
