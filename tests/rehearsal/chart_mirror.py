"""The charts of the mirror, as Helm renders them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal import charts, paths

VALUES = {"karpenter": ["--set=settings.clusterName=trainyard"]}


@pytest.fixture(scope="module")
def mirror() -> Path:
    if not (paths.BIN / "helm").exists():
        pytest.skip("the toolchain was never built here")
    return charts.ensure()


def in_reach(mirror: Path, name: str) -> Path:
    """A chart of the mirror; skips the test where the Go that its module needs was never fetched."""
    if not (mirror / name).exists():
        pytest.skip(
            "its module was never fetched: `python -m rehearsal build --also karpenter-1.15`"
        )
    return mirror / name


def rendered(mirror: Path, name: str, *more: str) -> list[dict[str, Any]]:
    unversioned = re.sub(r"-[\d.]+$", "", name)
    command = [
        str(paths.BIN / "helm"),
        "template",
        unversioned,
        str(in_reach(mirror, name)),
        "--namespace=kube-system",
        "--kube-version=1.34.0",
        "--include-crds",
    ]
    done = subprocess.run(
        [*command, *VALUES.get(unversioned, []), *more], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]
