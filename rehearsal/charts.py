"""Mirror of the Helm charts that a program can install here, made from pinned Go modules: paths.CHARTS/<name>/
is one chart.

What is published under a version is not quite what lies in the module of that version: a release
writes versions and image tags into the chart. CHARTS repeats that, and nothing else. Another chart
is another line there; its version is the one in the go.mod of `folder`.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from rehearsal import paths
from rehearsal.toolchain import go, link, locked
from rehearsal.toolchain.programs import own_go, pinned
from trainyard.catalog.versions import KUEUE, NEWEST_KARPENTER, NEWEST_KUEUE


@dataclass(frozen=True, kw_only=True)
class Chart:
    """Chart, with the place it comes from and the folder it goes to."""

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


def _karpenter(suffix: str, folder: str, release: str) -> tuple[Chart, ...]:
    """Karpenter's charts, as hack/release/common.sh of karpenter-provider-aws writes a release into
    them. The image digest of the release is in no module: left out."""
    numbers = (
        ("Chart.yaml", "version: .*", f"version: {release}"),
        ("Chart.yaml", "appVersion: .*", f"appVersion: {release}"),
    )
    image = (
        ("values.yaml", "    tag: .*", f"    tag: {release}"),
        ("values.yaml", "    digest: sha256:.*", '    digest: ""'),
    )
    module = "github.com/aws/karpenter-provider-aws"
    return tuple(
        Chart(place=place, folder=folder, module=module, source=source, edits=edits)
        for place, source, edits in (
            (f"karpenter{suffix}", "charts/karpenter", (*numbers, *image)),
            # A link in the repository, which a module does not have.
            (f"karpenter{suffix}/crds", "pkg/apis/crds", ()),
            (f"karpenter-crd{suffix}", "charts/karpenter-crd", numbers),
        )
    )


TRAINER, JOBSET = "github.com/kubeflow/trainer/v2", "sigs.k8s.io/jobset"
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
    *_karpenter("", "karpenter", "{number}"),
    # The charts of 1.15.0 and 1.15.2 are the same but for these edits.
    *_karpenter(f"-{NEWEST_KARPENTER}", "karpenter-1.15", NEWEST_KARPENTER),
    # .github/workflows/publish-helm-charts.yaml of trainer; since 2.3 the image's tag follows from
    # the version, and `helm dependency build` brings the chart of a data cache that is off: the
    # mirror does without it
    Chart(
        place="kubeflow-trainer-2.1.0",
        folder="trainer",
        module=TRAINER,
        source="charts/kubeflow-trainer",
        edits=(("Chart.yaml", "", "appVersion: {version}"),),
    ),
    Chart(
        place="kubeflow-trainer-2.3.0",
        folder="trainer-2.3",
        module=TRAINER,
        source="charts/kubeflow-trainer",
        edits=(("Chart.yaml", r"- name: lws\n.*\n.*\n.*", ""),),
    ),
    *(
        Chart(
            place=f"kubeflow-trainer-{release}/charts/jobset",
            folder=folder,
            module=JOBSET,
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
        for release, folder in {KUEUE: "kueue", NEWEST_KUEUE: "kueue-0.19"}.items()
    ),
    Chart(
        place="nvidia-device-plugin",
        folder="charts",
        module="github.com/NVIDIA/k8s-device-plugin",
        source="deployments/helm/nvidia-device-plugin",
    ),
)


def pinned_mirror() -> Path:
    """Where the charts of these pins lie, whatever the link says that all checkouts share."""
    pins = repr([(chart, chart.version) for chart in _within_reach()]).encode()
    return paths.CHARTS.with_name(f"charts-{hashlib.sha256(pins).hexdigest()[:16]}")


def _within_reach() -> list[Chart]:
    """Every chart but those whose module needs a newer Go and was never fetched: whoever needs it does."""
    modules = paths.CACHE / "go/mod"
    return [
        one
        for one in CHARTS
        if not own_go(one.folder) or (modules / f"{one.module}@{one.version}").exists()
    ]


def ensure(report: go.Report = print) -> Path:
    """The folder with every chart, made where it is missing or its pins changed."""
    mirror = pinned_mirror()
    with locked(report, mirror.exists):
        _make(mirror, report)
    link(paths.CHARTS, mirror)
    return paths.CHARTS


def _make(mirror: Path, report: go.Report) -> None:
    if mirror.exists():
        return
    partial = mirror.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    for chart in _within_reach():
        report(f"chart {chart.place} of {chart.module} {chart.version}")
        source = go.module_folder(chart.folder, chart.module, report) / chart.source
        target = partial / chart.place
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
