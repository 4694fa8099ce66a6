"""Mirror of the Helm charts the graph installs, made from pinned Go modules: paths.CHARTS/<name>/
is one chart.

What is published under a version is not quite what lies in the module of that version: a release
writes versions and image tags into the chart. CHARTS repeats that, and nothing else. Another chart
is another line there; its version is the one in the go.mod of `folder`. `python -m
rehearsal.charts` writes the product's own charts of the Trainer's CRDs, and what all charts make in a
cluster (trainyard/catalog/chart_objects.json).
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rehearsal import paths, toolchain
from rehearsal.chart_objects import OWN, objects_text
from rehearsal.toolchain import go, link, locked
from rehearsal.toolchain.programs import pinned
from trainyard import command_line
from trainyard.catalog.chart_objects import OBJECTS_FILE
from trainyard.catalog.versions import KUEUE


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Where a chart comes from and where it goes."""

    place: str
    folder: str
    module: str
    source: str
    edits: tuple[tuple[str, str, str], ...] = ()
    """(file, regular expression of the one line to replace or nothing to append, the line that
    comes), where {version} is the module's, v1.2.3, and {number} the same without v."""

    @property
    def version(self) -> str:
        return pinned(self.folder, self.module)


_KARPENTER = "github.com/aws/karpenter-provider-aws"
# hack/release/common.sh of karpenter-provider-aws. The image digest of the release is in no module:
# left out.
_KARPENTER_VERSIONS = (
    ("Chart.yaml", "version: .*", "version: {number}"),
    ("Chart.yaml", "appVersion: .*", "appVersion: {number}"),
)
_TRAINER, _JOBSET = "github.com/kubeflow/trainer/v2", "sigs.k8s.io/jobset"
# hack/helm-chart-package.sh of jobset
_JOBSET_RELEASE = (
    ("Chart.yaml", "", "appVersion: {version}"),
    (
        "values.yaml",
        "  repository: us-central1-docker.*",
        "  repository: registry.k8s.io/jobset/jobset",
    ),
    ("values.yaml", "  tag: main", "  tag: {version}"),
    ("values.yaml", "  pullPolicy: Always", "  pullPolicy: IfNotPresent"),
)
CHARTS = (
    Chart(
        place="karpenter",
        folder="karpenter",
        module=_KARPENTER,
        source="charts/karpenter",
        edits=(
            *_KARPENTER_VERSIONS,
            ("values.yaml", "    tag: .*", "    tag: {number}"),
            ("values.yaml", "    digest: sha256:.*", '    digest: ""'),
        ),
    ),
    Chart(
        place="karpenter-crd",
        folder="karpenter",
        module=_KARPENTER,
        source="charts/karpenter-crd",
        edits=_KARPENTER_VERSIONS,
    ),
    # .github/workflows/publish-helm-charts.yaml of trainer; since 2.3 the image's tag follows from
    # the version, and `helm dependency build` brings the chart of a data cache that is off: the
    # mirror does without it
    Chart(
        place="kubeflow-trainer-2.1.0",
        folder="trainer",
        module=_TRAINER,
        source="charts/kubeflow-trainer",
        edits=(("Chart.yaml", "", "appVersion: {version}"),),
    ),
    Chart(
        place="kubeflow-trainer-2.3.0",
        folder="trainer-2.3",
        module=_TRAINER,
        source="charts/kubeflow-trainer",
        edits=(("Chart.yaml", r"- name: lws\n.*\n.*\n.*", ""),),
    ),
    *(
        Chart(
            place=f"kubeflow-trainer-{release}/charts/jobset",
            folder=folder,
            module=_JOBSET,
            source="charts/jobset",
            edits=_JOBSET_RELEASE,
        )
        for release, folder in {"2.1.0": "jobset", "2.3.0": "jobset-0.12"}.items()
    ),
    *(
        Chart(
            place=f"kueue-{release}",
            folder=folder,
            module="sigs.k8s.io/kueue",
            source="charts/kueue",
        )
        for release, folder in {KUEUE: "kueue", "0.19.2": "kueue-0.19"}.items()
    ),
    Chart(
        place="nvidia-device-plugin",
        folder="charts",
        module="github.com/NVIDIA/k8s-device-plugin",
        source="deployments/helm/nvidia-device-plugin",
    ),
)


def ensure(report: go.Report = print) -> Path:
    """The folder with every chart, made where it is missing or its pins changed."""
    pins = repr([(chart, chart.version) for chart in CHARTS]).encode()
    mirror = paths.CHARTS.with_name(f"charts-{hashlib.sha256(pins).hexdigest()[:16]}")
    if not mirror.exists():
        with locked(report):
            _make(mirror, report)
    link(paths.CHARTS, mirror)
    return paths.CHARTS


def _make(mirror: Path, report: go.Report) -> None:
    if mirror.exists():  # by another process, while this one waited
        return
    partial = mirror.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for chart in CHARTS:
        report(f"chart {chart.place} of {chart.module} {chart.version}")
        source, target = (
            go.module_folder(chart.folder, chart.module, report) / chart.source,
            partial / chart.place,
        )
        # without the files' modes: the module cache is read-only
        shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
        for file, line, becomes in chart.edits:
            release = becomes.format(version=chart.version, number=chart.version.removeprefix("v"))
            _edit(target / file, line, release)
    partial.rename(mirror)


def _edit(file: Path, line: str, becomes: str) -> None:
    before = file.read_text()
    after, count = (
        re.subn(f"^{line}$", becomes, before, flags=re.MULTILINE)
        if line
        else (f"{before}{becomes}\n", 1)
    )
    if count != 1:
        raise go.ToolchainError(
            f"{file}: {count} lines match {line!r}; look how this version is published"
        )
    file.write_text(after)


CRDS: dict[str, tuple[tuple[str, str, str], ...]] = {
    release: (
        (trainer, _TRAINER, "manifests/base/crds"),
        (jobset, _JOBSET, "config/components/crd/bases"),
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
            "description: CRDs of Trainer and JobSet, made by python -m rehearsal.charts\n"
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
        "rehearsal.charts",
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
