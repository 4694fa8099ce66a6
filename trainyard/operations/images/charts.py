"""`trainyard mirror --charts`: copy the charts that Pulumi installs into the place that `artifacts.charts`
names, a folder or a registry, with Helm.

In a folder each chart is unpacked under its name, as Pulumi reads it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from trainyard import command_line
from trainyard.decide import plan_stack
from trainyard.derive.charts import PublicChart, public_charts
from trainyard.operations.images.builders import CannotBuild
from trainyard.operations.images.copies import Mirror
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.stack import Stack
from trainyard.plans.images import ecr_region
from trainyard.reports.charts import faults_of

OCI = "oci://"
HELM = "helm"


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A folder of unpacked charts."""

    path: Path

    def has(self, chart: PublicChart) -> bool:
        return not faults_of(chart, self.path)

    def take(self, chart: PublicChart, archive: Path) -> None:
        """Unpack the one folder of the archive, in one step; what was there before is replaced."""
        self.path.mkdir(parents=True, exist_ok=True)
        target = self.path / chart.folder
        with TemporaryDirectory(prefix=".trainyard-", dir=self.path) as folder:
            with tarfile.open(archive) as found:
                found.extractall(folder, filter="data")
            [made] = Path(folder).iterdir()
            if target.exists():
                target.rename(Path(folder) / ".before")
            os.rename(made, target)


@dataclass(frozen=True, kw_only=True)
class OciPrefix:
    """The beginning of charts in a registry."""

    name: str
    options: Sequence[str]
    """With which Helm reaches it."""
    ecr: Mirror | None
    """Where it is a registry of ECR, whose repositories are made first."""

    def has(self, chart: PublicChart) -> bool:
        words = ["show", "chart", f"{self.name}/{chart.name}", "--version", chart.version]
        done = subprocess.run([HELM, *words, *self.options], capture_output=True, check=False)
        return done.returncode == 0

    def take(self, chart: PublicChart, archive: Path) -> None:
        if self.ecr:
            _, _, prefix = self.name.removeprefix(OCI).partition("/")
            self.ecr.make_repository(f"{prefix}/{chart.name}".lstrip("/"))
        _helm(["push", str(archive), self.name, *self.options])


def copy_charts(stack: Stack, *, nothing: str, yes: bool, as_json: bool) -> int:
    """Copy what is missing, after a question. 0 where every chart is there at the end."""
    from botocore.exceptions import BotoCoreError, ClientError

    charts, listing = public_charts(stack.environment), sys.stderr if as_json else sys.stdout
    failed, digests = list[str](), dict[PublicChart, str]()
    with _place(stack) as place:
        missing = [chart for chart in charts if not place.has(chart)]
        for line in command_line.table([_row(chart) for chart in missing]) if missing else ():
            print(line, file=listing)
        print(f"{len(missing)} of {len(charts)} charts are missing", file=listing)
        if missing and (code := ask(f"Copy {len(missing)} charts?", yes=yes, otherwise=nothing)):
            return code
        for chart in missing:
            try:
                digests[chart] = _copy(chart, place)
            except (CannotBuild, OSError, BotoCoreError, ClientError) as error:
                print(f"{chart.name}: {error}", file=sys.stderr)
                failed.append(chart.name)
    _tell(digests, as_json=as_json)
    if failed:
        print(f"not copied: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _tell(digests: Mapping[PublicChart, str], *, as_json: bool) -> None:
    """Print what was copied: name, version, and SHA-256 of the archive."""
    rows = [(chart.name, chart.version, digest) for chart, digest in digests.items()]
    if as_json:
        print(json.dumps([dict(zip(("chart", "version", "sha256"), r, strict=True)) for r in rows]))
    elif rows:
        print(*command_line.table(rows), sep="\n")


def _row(chart: PublicChart) -> tuple[str, str]:
    source = chart.source
    return f"{source.repository}/{chart.name}" if source.repository else source.chart, chart.version


def _copy(chart: PublicChart, place: Folder | OciPrefix) -> str:
    """The SHA-256 of the chart's archive. CannotBuild where Helm says no; its output is the
    person's."""
    source = chart.source
    named = [source.chart, *(["--repo", source.repository] if source.repository else [])]
    with TemporaryDirectory(prefix="trainyard-") as folder:
        _helm(["pull", *named, "--version", chart.version, "--destination", folder])
        archives = [*Path(folder).glob("*.tgz")]
        if len(archives) != 1:
            raise CannotBuild(f"helm pull wrote {len(archives)} archives")
        digest = hashlib.sha256(archives[0].read_bytes()).hexdigest()
        place.take(chart, archives[0])
    return digest


def _helm(words: Sequence[str]) -> None:
    done = subprocess.run([HELM, *words], stdout=2, check=False)  # standard output may be JSON
    if done.returncode:
        what = " ".join(words[:2])
        raise CannotBuild(f"helm {what} ended with {done.returncode}; its reason is above")


@contextmanager
def _place(stack: Stack) -> Iterator[Folder | OciPrefix]:
    """Place to which the charts go. For a registry that is not ECR's the person has logged in
    (`helm registry login`)."""
    named = stack.environment.artifacts.charts if stack.environment.artifacts else None
    if named is None:
        raise CannotBuild(
            "the environment names no place for charts. Fix: add artifacts: {charts: <folder>} to"
            f" environment, or {OCI}<registry>/<prefix>"
        )
    if shutil.which(HELM) is None:
        raise CannotBuild(f"{HELM} is not on PATH, which copies charts. Fix: install it (helm.sh)")
    name = named.rstrip("/")
    host = name.removeprefix(OCI).partition("/")[0]
    if not name.startswith(OCI):
        yield Folder(path=Path(named))
    elif ecr_region(host) is None:
        yield OciPrefix(name=name, options=[], ecr=None)
    else:
        ecr = Mirror(plan_stack(stack.reading).accepted(), host)
        with TemporaryDirectory(prefix="trainyard-") as folder:
            file = Path(folder) / "config.json"
            file.touch(mode=0o600)
            file.write_text(json.dumps({"auths": {host: {"auth": ecr.token()}}}))
            yield OciPrefix(name=name, options=["--registry-config", str(file)], ecr=ecr)
