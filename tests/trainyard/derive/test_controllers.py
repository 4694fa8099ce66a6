"""Where the charts of controllers come from."""

from __future__ import annotations

import pytest

from tests.support.recording import CHECKOUT
from tests.support.stackfile import at, environment_plan
from trainyard.catalog import versions


@pytest.mark.parametrize(
    ("charts", "found"),
    [
        (None, ("oci://public.ecr.aws/karpenter/karpenter", versions.KARPENTER)),
        ("/mirror/", ("/mirror/karpenter", None)),
        ("oci://registry/charts/", ("oci://registry/charts/karpenter", versions.KARPENTER)),
    ],
)
def test_charts_come_from_where_the_stack_says(
    charts: str | None, found: tuple[str, str | None]
) -> None:
    plan = environment_plan(*([at("artifacts.charts", charts)] if charts else []))
    assert (plan.karpenter.controller.chart, plan.karpenter.controller.version) == found
    every = (
        plan.karpenter.crds,
        plan.karpenter.controller,
        plan.trainer.chart,
        plan.device_plugins.nvidia,
    )
    assert charts is None or all(c.repository is None and c.chart.startswith(charts) for c in every)


@pytest.mark.parametrize(
    ("charts", "ends", "version"),
    [
        (None, "", "1.15.2"),
        ("/mirror", "-1.15.2", None),
        ("oci://registry/charts", "", "1.15.2"),
    ],
)
def test_karpenters_charts_and_image_have_the_version_of_the_stack_file(
    charts: str | None, ends: str, version: str | None
) -> None:
    edits = [at("artifacts.charts", charts)] if charts else []
    plan = environment_plan(at("karpenter.version", "1.15.2"), *edits).karpenter
    place = charts or "oci://public.ecr.aws/karpenter"
    found = [(chart.chart, chart.version) for chart in (plan.crds, plan.controller)]
    assert found == [(f"{place}/{name}{ends}", version) for name in ("karpenter-crd", "karpenter")]
    images = [image.image for image in plan.controller.images]
    assert images == ["public.ecr.aws/karpenter/controller:1.15.2"] and plan.version == "1.15.2"


@pytest.mark.parametrize("version", versions.TRAINERS)
def test_the_trainers_charts_have_the_version_of_the_stack_file(version: str) -> None:
    trainer = environment_plan(at("trainer.version", version)).trainer
    assert (trainer.chart.version, trainer.image_tag) == (version, f"v{version}")
    assert (CHECKOUT / trainer.crds.chart / "Chart.yaml").exists() and trainer.crds.chart.endswith(
        f"-{version}"
    )
    mirrored = environment_plan(
        at("trainer.version", version), at("artifacts.charts", "/mirror")
    ).trainer
    assert (mirrored.chart.chart, mirrored.crds) == (
        f"/mirror/kubeflow-trainer-{version}",
        trainer.crds,
    )
