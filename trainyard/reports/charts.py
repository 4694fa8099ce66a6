"""Report of `trainyard check` about a folder of charts (`artifacts.charts`): it has every chart of
the stack, in its pinned version. Of a registry nothing is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainyard.derive.charts import PublicChart, public_charts
from trainyard.problems import InputError
from trainyard.settings.environment import EnvironmentConfig

CHARTS = "environment.artifacts.charts"
_VERSION = re.compile(r"^version:\s*[\"']?v?([^\s\"'#]+)", re.MULTILINE)


def chart_errors(wanted: EnvironmentConfig, stack: str) -> Iterator[InputError]:
    """Charts that the folder lacks."""
    place = wanted.artifacts.charts if wanted.artifacts else None
    if place is None or place.startswith("oci://"):
        return
    found = {one.folder: faults_of(one, Path(place)) for one in public_charts(wanted)}
    if faults := [f"{folder} {fault}" for folder, fault in found.items() if fault]:
        there = Path(place).is_dir()
        yield InputError(
            path=CHARTS,
            must="be a folder with every chart of the stack",
            got=f"{place}: {', '.join(faults)}" if there else f"{place}, which is no folder",
            fix=f"run trainyard mirror {stack} --charts, which writes them",
        )


def faults_of(chart: PublicChart, place: Path) -> str:
    """Error about a chart of the folder; empty where it is sound. A company's own build of the
    version may have more behind it: 1.14.1-ours."""
    try:
        text = (place / chart.folder / "Chart.yaml").read_text()
    except OSError:
        return "is missing"
    found = _VERSION.search(text)
    version = found[1] if found else "none"
    if re.match(rf"{re.escape(chart.version)}(?:[-+]|$)", version):
        return ""
    return f"has version {version}, not {chart.version}"
