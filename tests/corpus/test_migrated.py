"""`trainyard migrate` accounts for every value of every file: it is in the entry, in a sentence, or the same
for all jobs. What it prints passes the check of its stack, or the lines to change are named."""

from __future__ import annotations

import copy
import random
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpus.test_placeholders import documents_of, release_of, texts
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from trainyard.decide import plan_stack
from trainyard.manifests.document import read_manifest
from trainyard.migrate.migrate import _entries, _sections, migrate_all
from trainyard.migrate.v2_script import NOT_DONE
from trainyard.settings.reading.reader import read_file

SEED, SAMPLE, FEW = 38, 40, 6
Steps = tuple[str | int, ...]
SAME_FOR_ALL = {"apiVersion", "manager"}
"""Fields that say the same of every job: the API of its kind, and who wrote a patch."""
HOLDERS = {"containers", "initContainers"}
"""Lists whose items have a name that is nobody else's."""


def _leaves(value: Any, path: Steps = ()) -> list[Steps]:
    if not isinstance(value, dict | list) or not value:
        return [] if value is None else [path]
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [leaf for step, each in inside for leaf in _leaves(each, (*path, step))]


def _said(documents: list[Any], release: str) -> tuple[str, list[str]]:
    """What is printed of the documents, without lines: the entries, and the sentences."""
    workloads, _ = read_manifest(yaml.safe_dump_all(documents, sort_keys=False), "x.yaml")
    migrations, errors = migrate_all(workloads, "x.yaml", release=release)
    sentences = [line for lines in _sections(migrations, None).values() for line in lines]
    said = [each for each in (*sentences, *map(str, errors)) if each not in NOT_DONE]
    return "\n".join(_entries(migrations)), [re.sub(r":\d+\]", "]", each) for each in said]


@cache
def _usual(name: str) -> tuple[str, list[str]]:
    return _said(documents_of(name), release_of(name))


@cache
def _named(name: str) -> set[tuple[str, ...]]:
    """Paths of the values that a sentence names with their place in the file."""
    found = re.findall(r"([\w.\[\]/-]+) \[x\.yaml\]", "\n".join(_usual(name)[1]))
    return {tuple(re.findall(r"[^.\[\]]+", each)) for each in found}


def _is_named(name: str, path: Steps) -> bool:
    """True where a sentence names the value, what it is in, or its object."""
    document = documents_of(name)[path[0]]  # type: ignore[call-overload]
    kind = str(document.get("kind", "object")).removeprefix("Cluster")
    whole = (
        f"{kind} {(document.get('metadata') or {}).get('name', '')} [x.yaml]: no part of an entry"
    )
    steps = tuple(re.findall(r"[^.\[\]]+", ".".join(map(str, path[1:]))))
    ways = (steps[:length] for length in range(1, len(steps) + 1))
    said = _usual(name)[1]
    return any(way in _named(name) for way in ways) or any(it.startswith(whole) for it in said)


def _roles(documents: list[Any], path: Steps) -> list[Steps]:
    """The path, and those at which another role of its job has the same value."""
    if "pytorchReplicaSpecs" not in path[:3]:
        return [path]
    roles = documents[path[0]]["spec"]["pytorchReplicaSpecs"]  # type: ignore[call-overload]
    places = [(*path[:3], role, *path[4:]) for role in roles]
    return [each for each in places if _value(documents, each) == _value(documents, path)]


def _value(documents: list[Any], path: Steps) -> Any:
    value: Any = documents
    for step in path:
        known: Any = dict(enumerate(value)) if isinstance(value, list) else value
        value = known.get(step) if isinstance(known, dict) else None
    return value


def _with_another(documents: list[Any], path: Steps) -> list[Any]:
    """The documents with another value, in each role that has it: in one it would be a difference of the roles."""
    made, other = copy.deepcopy(documents), _other(str(path[-1]), _value(documents, path))
    for *above, last in _roles(documents, path):
        place: Any = made
        for step in above:
            place = place[step]
        place[last] = other
    return made


def _other(field: str, value: Any) -> Any:
    if isinstance(value, bool | int):
        return (not value) if isinstance(value, bool) else value + 1
    if field in ("numProcPerNode", "nprocPerNode"):
        return 7
    special = {"sizeLimit": "777Gi", "medium": "", "emptyDir": {"medium": "Memory"}}
    return special.get(field, f"{value}-other")


def _cases() -> list[tuple[str, Steps]]:
    return [
        (name, path)
        for name in sorted(texts())
        if any(each.get("kind") in ("TrainJob", "PyTorchJob") for each in documents_of(name))
        for path in _leaves(documents_of(name))
        if not SAME_FOR_ALL & {*path} and not (path[-1] == "name" and path[-3] in HOLDERS)
    ]


def _is_of_no_entry(name: str, path: Steps) -> bool:
    """True of the namespace of what a job uses, which is the job's, and of the names of a file of which
    nothing is printed but why."""
    document = documents_of(name)[path[0]]  # type: ignore[call-overload]
    beside = document.get("kind") not in ("TrainJob", "PyTorchJob")
    return (
        beside
        and path[1:] == ("metadata", "namespace")
        or (path[1] == "metadata" and not _usual(name)[0])
    )


def _lost(name: str, path: Steps) -> list[str]:
    """The case, where nothing that is printed depends on the value or names it."""
    places = _roles(documents_of(name), path)
    if any(_is_named(name, place) for place in places) or _is_of_no_entry(name, path):
        return []
    said = _said(_with_another(documents_of(name), path), release_of(name))
    return [f"{name} {'.'.join(map(str, path))}"] if said == _usual(name) else []


def test_there_are_many_values_in_the_files_of_many_people() -> None:
    assert len(_cases()) > 1200


def test_a_value_of_a_file_is_not_lost_by_migrate() -> None:
    cases = random.Random(SEED).sample(_cases(), SAMPLE)
    assert [lost for case in cases for lost in _lost(*case)] == []


SECOND = [
    ("trainjob-own-runtime-beside.yaml", "numNodes"),
    ("a Slurm-like script with a trap, an array and process ids", "Worker"),
    ("pytorchjob-gloo-with-sidecars.yaml", "Worker"),
    ("one file of a ConfigMap, and its keys as variables", "env"),
    ("one file of a ConfigMap, and its keys as variables", "data"),
    ("one file of a ConfigMap, and its keys as variables", "volumeMounts"),
    ("a job that waits for another one in its runtime", "command"),
]
"""Values that were lost: of a runtime that the job overrides, of a second replica, of a source of a variable,
of a key of a ConfigMap beside the mounted one."""


@pytest.mark.parametrize(("name", "step"), SECOND)
def test_values_that_were_lost_are_printed(name: str, step: str) -> None:
    cases = [path for file, path in _cases() if file == name and step in path]
    chosen = random.Random(SEED).sample(cases, min(FEW, len(cases)))
    assert chosen and [lost for path in chosen for lost in _lost(name, path)] == []


@pytest.mark.soak
def test_no_value_of_any_file_is_lost_by_migrate() -> None:
    assert [lost for case in _cases() for lost in _lost(*case)] == []


JOBS = sorted({name for name, _ in _cases()})


@pytest.mark.parametrize("names", [JOBS[start::4] for start in range(4)])
def test_what_is_printed_for_a_stack_passes_its_check_or_the_lines_to_change_are_named(
    names: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copy(CHECKOUT / "Pulumi.yaml", tmp_path)
    shutil.copy(CHECKOUT / "Pulumi.dev.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    stack = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())
    unsaid = []
    for name in names:
        Path("job.yaml").write_text(texts()[name])
        code = run_word("migrate", ["job.yaml", "--stack", "dev"])
        said = capsys.readouterr().out
        if "Cannot be migrated:" in said:
            assert code == 1, name
            continue
        made = copy.deepcopy(stack)
        made["config"]["trainyard:environment"]["jobs"] = yaml.safe_load(said)["jobs"]
        Path("Pulumi.made.yaml").write_text(yaml.safe_dump(made, sort_keys=False))
        _, _, to_change = said.partition("# To change before the stack accepts it")
        for error in plan_stack(read_file("made", tmp_path), tmp_path).errors:
            unsaid += (
                [f"{name}: {error}"] if f" {error.path}: must {error.must}" not in to_change else []
            )
    assert unsaid == []
