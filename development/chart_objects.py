"""Objects that Helm makes of each chart that the graph installs: the text of
trainyard/catalog/chart_objects.json.

The components say under which name, in which namespace and with which values a chart is installed.
RELEASES repeats what the names of objects follow from.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import yaml

from development import engine
from rehearsal import paths
from rehearsal.toolchain import go
from trainyard.catalog.chart_objects import KINDS, WORKLOADS, ObjectName

RELEASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "karpenter": ("kube-system", "karpenter", ("--set=settings.clusterName=any",)),
    "karpenter-crd": ("kube-system", "karpenter-crd", ()),
    "kubeflow-trainer": (
        "kubeflow-system",
        "kubeflow-trainer-[0-9]*",
        ("--set=crds.enabled=false",),
    ),
    "kubeflow-trainer-crds": ("kubeflow-system", "kubeflow-trainer-crds-*", ()),
    "kueue": ("kueue-system", "kueue-*", ()),
    "nvidia-device-plugin": ("kube-system", "nvidia-device-plugin", ()),
    "training-operator": ("kubeflow", "training-operator", ()),
}
"""Helm release → its namespace, the folders of its chart, options of Helm."""
OWN = engine.CHECKOUT / "components/charts"


def objects_text(mirror: Path) -> str:
    """chart_objects.json: a line for each release. `mirror`: the folder with the public charts."""
    rows = ",\n".join(
        f"{json.dumps(release)}: "
        + json.dumps(
            {"namespace": namespace, "objects": sorted(_made(mirror, release), key=str)},
        )
        for release, (namespace, _, _) in RELEASES.items()
    )
    return f"{{\n{rows}\n}}\n"


def _made(mirror: Path, release: str) -> set[ObjectName]:
    """Objects that any version of the chart makes."""
    namespace, charts, options = RELEASES[release]
    folders = [*mirror.glob(charts), *OWN.glob(charts)]
    return {name for folder in folders for name in _rendered(release, namespace, folder, options)}


def _rendered(
    release: str, namespace: str, chart: Path, options: tuple[str, ...]
) -> Iterator[ObjectName]:
    command = [str(paths.BIN / "helm"), "template", release, str(chart), f"--namespace={namespace}"]
    done = subprocess.run(
        [*command, "--kube-version=1.35.0", *options], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise go.ToolchainError(f"{chart.name}: {done.stderr.strip()}")
    for made in filter(None, yaml.load_all(done.stdout, yaml.CSafeLoader)):
        kind, meta = made["kind"], made["metadata"]
        if kind in KINDS:
            yield ObjectName(kind, meta["name"])
        elif kind in WORKLOADS:
            yield ObjectName(kind, meta["name"], meta.get("namespace") or namespace)
