"""`python -m development.charts` writes the product's own charts of the Trainer's CRDs, and what all
charts make in a cluster (trainyard/catalog/chart_objects.json)."""

from __future__ import annotations

import json
from typing import Any

import yaml

from development.chart_objects import OWN, objects_text
from rehearsal import toolchain
from rehearsal.charts import JOBSET, TRAINER, ensure
from rehearsal.toolchain import go
from trainyard import command_line
from trainyard.catalog.chart_objects import OBJECTS_FILE

CRDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    release: (
        (trainer, TRAINER, "manifests/base/crds"),
        (jobset, JOBSET, "config/components/crd/bases"),
    )
    for release, trainer, jobset in (
        ("2.1.0", "trainer", "jobset"),
        ("2.3.0", "trainer-2.3", "jobset-0.12"),
    )
}
"""Trainer release → (folder, module, where in it the CRDs are)."""


def crd_chart(release: str, report: go.Report = print) -> dict[str, str]:
    """File → text of the chart with the CRDs of a Trainer release and of the JobSet in its chart.

    Without descriptions they are a tenth of their size: Helm keeps a whole release in one Secret of
    1 MiB.
    """
    files = [
        file
        for folder, module, at in CRDS[release]
        for file in sorted((go.module_folder(folder, module, report) / at).glob("*_*.yaml"))
    ]
    made = {
        "Chart.yaml": (
            f"apiVersion: v2\nname: kubeflow-trainer-crds\nversion: {release}\n"
            "description: CRDs of Trainer and JobSet, made by python -m development.charts\n"
        )
    }
    for file in files:
        crd = _undescribed(yaml.load(file.read_text(), yaml.CSafeLoader))
        crd["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
        made[f"templates/{crd['metadata']['name']}.yaml"] = (
            json.dumps(crd, separators=(",", ":")) + "\n"
        )
    return made


def _undescribed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _undescribed(inner)
            for key, inner in value.items()
            if not (key == "description" and isinstance(inner, str))
        }
    return [_undescribed(item) for item in value] if isinstance(value, list) else value


def main(arguments: list[str]) -> int:
    """Write them; 0."""
    command_line.parser(
        "development.charts",
        "Write the product's own charts of the Trainer's CRDs anew, from the pinned Go modules, and"
        " the table of what all charts make in a cluster.",
    ).parse_args(arguments)
    for release in CRDS:
        for name, text in crd_chart(release).items():
            target = OWN / f"kubeflow-trainer-crds-{release}" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
    toolchain.ensure(["helm"])
    OBJECTS_FILE.write_text(objects_text(ensure()))
    return 0


if __name__ == "__main__":
    command_line.run(main)
