"""What is written from upstream's charts: our charts of CRDs, and the table of what charts make."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml

from development.chart_objects import OWN, RELEASES, objects_text
from development.charts import CRDS, crd_chart
from rehearsal.toolchain import ToolchainError
from tests.rehearsal.chart_mirror import mirror, rendered
from trainyard.catalog.chart_objects import OBJECTS_FILE

__all__ = ["mirror"]

KEPT = {
    "kubeflow-trainer-crds 2.1.0": "b99dd5afbcfc7ff3",
    "kubeflow-trainer-crds 2.3.0": "57fb9c652b9c10ea",
    "training-operator 1.8.1+1": "aec30ef8094b77d8",
}
"""Chart and version → digest of its files. Pulumi compares the version of a Release's chart and not its files: a
chart that changes and keeps its version reaches no cluster that has it."""


@pytest.mark.world
@pytest.mark.parametrize("release", CRDS)
def test_a_release_brings_the_kinds_the_graph_uses_and_each_once(
    mirror: Path, release: str
) -> None:
    objects = rendered(mirror, "karpenter-crd") + rendered(OWN, f"kubeflow-trainer-crds-{release}")
    kinds = [o["spec"]["names"]["kind"] for o in objects if o["kind"] == "CustomResourceDefinition"]
    assert set(kinds) >= {
        "NodePool",
        "NodeClaim",
        "EC2NodeClass",
        "ClusterTrainingRuntime",
        "TrainJob",
        "JobSet",
    }
    assert len(kinds) == len(set(kinds))


@pytest.mark.world
@pytest.mark.parametrize("release", CRDS)
def test_our_charts_of_crds_are_what_upstreams_modules_hold(mirror: Path, release: str) -> None:
    for name, text in crd_chart(release).items():
        assert (OWN / f"kubeflow-trainer-crds-{release}" / name).read_text() == text, name


def test_a_newer_releases_workloads_can_replace_an_olders_in_place(mirror: Path) -> None:
    """A Deployment's selector can never change."""
    releases = (rendered(mirror, f"kubeflow-trainer-{release}") for release in CRDS)
    older, newer = (
        {o["metadata"]["name"]: o["spec"]["selector"] for o in objects if o["kind"] == "Deployment"}
        for objects in releases
    )
    assert older == newer and len(older) == 2


@pytest.mark.world
def test_the_table_of_what_charts_make_is_that_of_the_pinned_charts(mirror: Path) -> None:
    """After a change that is meant: python -m development.charts."""
    assert objects_text(mirror) == OBJECTS_FILE.read_text()


@pytest.mark.world
def test_a_chart_that_does_not_render_says_why(
    mirror: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RELEASES, "karpenter", ("kube-system", "karpenter", ()))
    with pytest.raises(ToolchainError, match="karpenter: .*clusterName"):
        objects_text(mirror)


def test_a_chart_of_ours_that_changes_has_another_version() -> None:
    """Then write the version in Chart.yaml, and the new line in KEPT."""
    found = {}
    for chart in OWN.iterdir():
        about = yaml.safe_load((chart / "Chart.yaml").read_text())
        digest = hashlib.sha256()
        for file in sorted(chart.rglob("*")):
            if file.is_file() and file.name != "README.md":
                digest.update(f"{file.relative_to(chart)}\n".encode() + file.read_bytes())
        found[f"{about['name']} {about['version']}"] = digest.hexdigest()[:16]
    assert found == KEPT
