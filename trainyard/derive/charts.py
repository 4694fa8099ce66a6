"""Public charts that a stack installs, for a place that has copies of them (`artifacts.charts`)."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.derive.controllers import chart, kueue_chart
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
    trainer = wanted.trainer.version
    chosen = {"kubeflow-trainer": chart("kubeflow-trainer", None, trainer)}
    if wanted.queues is not None:
        chosen["kueue"] = kueue_chart(TRAINER_RELEASES[trainer].kueue, None)
    pinned = ("karpenter-crd", "karpenter", "nvidia-device-plugin")
    return [
        *(PublicChart(name=name, folder=name, source=chart(name, None)) for name in pinned),
        *(
            PublicChart(name=name, folder=f"{name}-{source.version}", source=source)
            for name, source in chosen.items()
        ),
    ]
