"""The chart mirror: what a release writes into a chart, and that each chart renders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import charts, paths
from rehearsal.toolchain import ToolchainError, go
from tests.rehearsal.chart_mirror import in_reach, mirror, rendered

__all__ = ["mirror"]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The source of one chart, as it would lie in a module; the mirror is empty and lists only this
    chart."""
    source = tmp_path / "module/charts/example"
    (source / "templates").mkdir(parents=True)
    (source / "Chart.yaml").write_text("name: example\nversion: 0.0.0-dev\n")
    (source / "templates/secret.yaml").write_text("kind: Secret\n")
    source.joinpath("Chart.yaml").chmod(0o444)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(paths, "CHARTS", tmp_path / "cache/charts")
    monkeypatch.setattr(go, "module_folder", lambda folder, module, report: tmp_path / "module")
    mirror_only(
        monkeypatch,
        ("Chart.yaml", "version: .*", "version: {number}"),
        ("Chart.yaml", "", "appVersion: {version}"),
    )
    return source


def mirror_only(monkeypatch: pytest.MonkeyPatch, *edits: tuple[str, str, str]) -> None:
    example = charts.Chart(
        place="example",
        folder="jobset",
        module="sigs.k8s.io/jobset",
        source="charts/example",
        edits=edits,
    )
    monkeypatch.setattr(charts, "CHARTS", (example,))


def said_nothing(text: str) -> None:
    raise AssertionError(text)


def test_a_chart_lies_in_a_folder_of_its_name_with_the_versions_of_its_release(
    module: Path,
) -> None:
    mirror = charts.ensure(lambda text: None)
    assert (
        mirror / "example/Chart.yaml"
    ).read_text() == "name: example\nversion: 0.10.1\nappVersion: v0.10.1\n"
    assert (mirror / "example/templates/secret.yaml").read_text() == "kind: Secret\n"


def test_a_mirror_that_exists_is_not_made_again(module: Path) -> None:
    charts.ensure(lambda text: None)
    charts.ensure(said_nothing)


def test_a_line_that_is_not_there_to_replace_is_an_error(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror_only(monkeypatch, ("Chart.yaml", "tag: main", "tag: {version}"))
    with pytest.raises(ToolchainError, match="0 lines match 'tag: main'"):
        charts.ensure(lambda text: None)
    assert not paths.CHARTS.exists()


def test_a_chart_whose_module_needs_a_newer_go_is_there_once_the_module_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody gets another Go for charts alone."""
    newer = "karpenter-1.15.2"
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    without = charts.pinned_mirror()
    assert newer not in [chart.place for chart in charts._within_reach()]
    (tmp_path / "go/mod/github.com/aws/karpenter-provider-aws@v1.15.0").mkdir(parents=True)
    assert newer in [chart.place for chart in charts._within_reach()]
    assert charts.pinned_mirror() != without


def images(objects: list[dict[str, Any]]) -> set[str]:
    workloads = [o for o in objects if o["kind"] in ("Deployment", "DaemonSet")]
    return {c["image"] for o in workloads for c in o["spec"]["template"]["spec"]["containers"]}


@pytest.mark.world
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("karpenter", {"public.ecr.aws/karpenter/controller:1.14.1"}),
        ("karpenter-crd", set()),
        ("karpenter-1.15.2", {"public.ecr.aws/karpenter/controller:1.15.2"}),
        ("karpenter-crd-1.15.2", set()),
        (
            "kubeflow-trainer-2.1.0",
            {
                "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.1.0",
                "registry.k8s.io/jobset/jobset:v0.10.1",
            },
        ),
        (
            "kubeflow-trainer-2.3.0",
            {
                "ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0",
                "registry.k8s.io/jobset/jobset:v0.12.0",
            },
        ),
        ("nvidia-device-plugin", {"nvcr.io/nvidia/k8s-device-plugin:v0.18.0"}),
    ],
)
def test_a_chart_of_the_mirror_renders_the_images_of_its_release(
    mirror: Path, name: str, expected: set[str]
) -> None:
    assert images(rendered(mirror, name)) == expected


def variables(mirror: Path, chart: str, *more: str) -> dict[str, str]:
    """Environment variables of Karpenter's controller, in one of its charts."""
    [controller] = [o for o in rendered(mirror, chart, *more) if o["kind"] == "Deployment"]
    [container] = controller["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}


KARPENTERS = ("karpenter", "karpenter-1.15.2")


@pytest.mark.world
@pytest.mark.parametrize("chart", KARPENTERS)
def test_the_value_that_ends_dry_runs_reaches_karpenter(mirror: Path, chart: str) -> None:
    assert "DISABLE_DRY_RUN" not in variables(mirror, chart)
    told = variables(mirror, chart, "--set=settings.disableDryRun=true")
    assert told["DISABLE_DRY_RUN"] == "true"


@pytest.mark.world
@pytest.mark.parametrize("chart", KARPENTERS)
def test_karpenter_repairs_reboots_and_terminates_nothing_first_unless_it_is_told_to(
    mirror: Path, chart: str
) -> None:
    """The program of this checkout repairs nodes, and no stack tells Karpenter to."""
    found = variables(mirror, chart)
    gates = f"{found['FEATURE_GATES']},{found.get('AWS_FEATURE_GATES', '')}".strip(",").split(",")
    assert [gate for gate in gates if not gate.endswith("=false")] == ["ReservedCapacity=true"]
    assert "NodeRepair=false" in gates
    assert chart == "karpenter" or {"TerminateFirstDrift=false", "RebootForRepair=false"} <= {
        *gates
    }


@pytest.mark.world
@pytest.mark.parametrize(
    ("name", "version", "app_version"),
    [
        ("karpenter", "1.14.1", "1.14.1"),
        ("karpenter-crd", "1.14.1", "1.14.1"),
        ("karpenter-1.15.2", "1.15.2", "1.15.2"),
        ("karpenter-crd-1.15.2", "1.15.2", "1.15.2"),
        ("kubeflow-trainer-2.1.0", "2.1.0", "v2.1.0"),
        ("kubeflow-trainer-2.3.0", "2.3.0", None),
        ("nvidia-device-plugin", "0.18.0", "0.18.0"),
    ],
)
def test_a_chart_of_the_mirror_says_the_versions_of_its_release(
    mirror: Path, name: str, version: str, app_version: str | None
) -> None:
    chart = yaml.safe_load((in_reach(mirror, name) / "Chart.yaml").read_text())
    assert name in (chart["name"], f"{chart['name']}-{version}")
    assert (chart["version"], chart.get("appVersion")) == (version, app_version)
