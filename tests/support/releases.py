"""Releases of Trainyard, and what an update from one to today's program replaces and deletes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.providers.kubernetes.differences import IDENTITY, covers
from rehearsal.providers.kubernetes.kinds import KINDS, Kind
from rehearsal.providers.wire import changes
from tests.support.recording import CHECKOUT, Graph, deploy
from trainyard.catalog.aws_types.table import AWS_TYPES

FOLDER = CHECKOUT / "tests" / "releases"
HEAD = "HEAD"
"""Commit of a release that has no tag yet."""
REPLACED, DELETED, FORGOTTEN = "replaced", "deleted", "leaves the state"
"""Ends of a resource in an update, in the words of the changelog."""
OURS = "trainyard:"
"""Beginning of the type of a component, which nothing in AWS or in a cluster corresponds to."""
OF_EKS = ("name", "vpcId", "encryptionConfigKeyArn", "accessConfig")
"""Inputs of `eks:index:Cluster` that make another cluster."""
Resource = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Release:
    """One row of releases.toml."""

    name: str
    commit: str
    day: date

    @property
    def tag(self) -> str:
        return f"v{self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of its Pulumi.dev.yaml."""
        return yaml.safe_load((FOLDER / self.name / "Pulumi.dev.yaml").read_text())["config"]

    @property
    def graph(self) -> list[Resource]:
        """Resources of its Pulumi.dev.yaml, as it recorded them."""
        return json.loads((FOLDER / self.name / "dev.graph.json").read_text())


RELEASES = tuple(
    Release(**row) for row in tomllib.loads((FOLDER / "releases.toml").read_text())["release"]
)
OLDER = tuple(each for each in RELEASES if each.commit != HEAD)
"""Releases that have a tag."""


def git(*words: str) -> str:
    """The output of a question to git. Skips the test where this is no clone, or one without history."""
    shallow = subprocess.run(
        ["git", "rev-parse", "--is-shallow-repository"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
    )
    if shallow.stdout.strip() != "false":
        pytest.skip("the commits of older releases are not in this clone: git fetch --unshallow")
    return subprocess.run(
        ["git", *words], cwd=CHECKOUT, check=True, capture_output=True, text=True
    ).stdout


def unpack(release: Release, folder: Path) -> Path:
    """Write the checkout of a release into a new folder, whose programs run in today's virtual environment."""
    git("cat-file", "-e", release.commit)
    folder.mkdir()
    archive = ["git", "archive", "--format=tar", release.commit]
    packed = subprocess.run(archive, cwd=CHECKOUT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    (folder / ".venv").symlink_to(sys.prefix)  # Pulumi.yaml names it
    return folder


def today(release: Release) -> Graph:
    """The graph of today's program and the stack file of a release."""

    def its(values: dict[str, Any]) -> None:
        values.clear()
        values.update(release.settings)

    return deploy("dev", its)


def lost(before: Iterable[Resource], after: Graph) -> dict[str, str]:
    """Type and name of each resource that an update replaces or deletes → what happens to it."""
    wanted = {(each["type"], each["name"]): each for each in json.loads(after.golden())}
    for node in after.nodes.values():
        for alias in node.options.aliases:
            if alias.spec.name:
                wanted.setdefault((node.kind, alias.spec.name), wanted[node.kind, node.name])
    found = {}
    for old in before:
        new = wanted.get((old["type"], old["name"]))
        if new is None:
            found[_label(old)] = FORGOTTEN if old["type"].startswith(OURS) else DELETED
        elif _needs_another(old, new):
            found[_label(old)] = REPLACED
        else:
            moved = old.get("parent") != new.get("parent")
            known = after.one(new["type"], new["name"]).options.aliases
            assert known or not moved, f"{_label(old)} has another parent and no alias"
    return found


def lost_by(steps: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Type and name → what happens to it, by the steps of `pulumi preview --json`."""
    found = {}
    for step in steps:
        type_, name = step["urn"].split("::")[2:]
        own = type_.rpartition("$")[2]
        label = _label({"type": own, "name": name})
        if step["op"] == "replace":
            found[label] = REPLACED
        elif step["op"] == "delete":
            found[label] = FORGOTTEN if own.startswith(OURS) else DELETED
    return found


def told(release: Release, changelog: str) -> dict[str, str]:
    """Resources that an update from a release to today's program replaces or deletes: rows of the tables below
    "Upgrading from <release>" in the changelog, of this release and of each one after it."""
    names = [each.name for each in RELEASES]
    found = dict[str, str]()
    for name in names[names.index(release.name) :]:
        section = changelog.partition(f"### Upgrading from {name}\n")[2].partition("\n### ")[0]
        found |= re.findall(r"^\| `(.+?)` \| (.+?)(?::.*)? \|.*\|$", section, re.MULTILINE)
    return found


def _label(resource: Resource) -> str:
    return f"{resource['type'].rpartition(':')[2]} {resource['name']}"


def _needs_another(old: Resource, new: Resource) -> bool:
    """True where an input differs that AWS or Kubernetes changes in no object."""
    fields = (*_fixed(new["type"]), *new.get("replaceOnChanges", ()))
    differ = changes(old["inputs"], new["inputs"])
    return any(covers(field, path) or covers(path, field) for field in fields for path in differ)


def _fixed(type_: str) -> tuple[str, ...]:
    """Paths of inputs of a type that make another object."""
    if type_ in AWS_TYPES:
        return AWS_TYPES[type_].replaces
    if type_ == "eks:index:Cluster":
        return OF_EKS
    if type_ == "kubernetes:helm.sh/v3:Release":
        return ("name", "namespace")
    if type_.startswith("kubernetes:"):
        _, version, kind = type_.split(":")
        return (*IDENTITY, *KINDS.get((version.removeprefix("core/"), kind), Kind()).replaces)
    return ()
