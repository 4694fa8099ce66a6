"""Public charts that a stack installs, for a place that has copies of them (`artifacts.charts`)."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.catalog.versions import KARPENTER, TRAINER_RELEASES
from trainyard.derive.controllers import chart, karpenter_charts, kueue_chart
from trainyard.plans.controllers import ChartPlan
from trainyard.settings.environment import EnvironmentConfig


@dataclass(frozen=True, kw_only=True)
class PublicChart:
    """A chart where its project publishes it."""

    name: str
    folder: str
    """Its name in a folder of charts."""
    source: ChartPlan

    @property
    def version(self) -> str:
        return str(self.source.version)


def public_charts(wanted: EnvironmentConfig) -> list[PublicChart]:
    """The charts that are not in this checkout, in the order in which a stack installs them."""
    trainer, karpenter = wanted.trainer.version, wanted.karpenter.version
    of_karpenter = dict(
        zip(("karpenter-crd", "karpenter"), karpenter_charts(karpenter, None), strict=True)
    )
    nvidia = {"nvidia-device-plugin": chart("nvidia-device-plugin", None)}
    of_jobs = {"kubeflow-trainer": chart("kubeflow-trainer", None, trainer)}
    if wanted.queues is not None:
        of_jobs["kueue"] = kueue_chart(TRAINER_RELEASES[trainer].kueue, None)
    chosen = of_jobs if karpenter == KARPENTER else of_karpenter | of_jobs
    return [
        PublicChart(
            name=name,
            folder=f"{name}-{source.version}" if name in chosen else name,
            source=source,
        )
        for name, source in (of_karpenter | nvidia | of_jobs).items()
    ]
