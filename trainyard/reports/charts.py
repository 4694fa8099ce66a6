"""Report of `trainyard check` about the place of charts (`artifacts.charts`): a folder has every chart of
the stack, in its pinned version. Of a registry nothing is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainyard.derive.charts import PublicChart, public_charts
from trainyard.plans.images import ecr_region
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig

CHARTS, OCI = "environment.artifacts.charts", "oci://"
_VERSION = re.compile(r"^version:\s*[\"']?v?([^\s\"'#]+)", re.MULTILINE)


def chart_problems(wanted: EnvironmentConfig, stack: str) -> Iterator[InputError | InputWarning]:
    """Charts that the folder lacks, and a registry that forgets who is logged in."""
    place = wanted.artifacts.charts if wanted.artifacts else None
    if place is None:
        return
    if place.startswith(OCI):
        yield from _login(place.removeprefix(OCI).partition("/")[0])
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


def _login(host: str) -> Iterator[InputWarning]:
    """The login that a registry of ECR asks for. Pulumi's provider reads charts with the credentials of Helm on
    its machine, or else of Docker (pulumi-kubernetes, helm_release.go, getActionConfig; issues 1914 and
    2364; helm 3.20.2, registry.NewClient). A token of ECR lasts 12 hours (ECR API, GetAuthorizationToken)."""
    if region := ecr_region(host):
        yield At(CHARTS).warning(
            f"each preview and update reads charts from {host}, which takes a login for 12 hours: run `aws ecr"
            f" get-login-password --region {region} | helm registry login --username AWS --password-stdin"
            f" {host}` before, where Docker has no credential helper for it"
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
