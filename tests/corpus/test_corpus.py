"""What people get wrong is refused or warned about where it stands, with its rule, its value and a way
out; what they write rightly, in whatever style, is not refused."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.corpus import bad_entries, bad_manifests
from tests.support.cases import environment, jobs
from tests.support.grammar import begins_with_a_verb
from tests.support.recording import WORKLOADS
from tests.support.stackfile import at, planned, values
from tests.trainyard.manifests.test_admission import NO_SHM
from trainyard.decide import plan_stack
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.manifests.rules import manifest_problems
from trainyard.plan import Planned
from trainyard.problems import InputError, Problem
from trainyard.settings.reading.reader import read_file
from trainyard.settings.reading.yaml_file import read_documents

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SHARE = 40
"""Rows that one test goes through."""


def _shares(rows: list[Any]) -> list[list[Any]]:
    return [rows[start : start + SHARE] for start in range(0, len(rows), SHARE)]


def _said_at(problems: Iterable[Problem], path: str) -> bool:
    """Whether a problem stands at the path, inside it, or at the value around it."""
    return any(
        place == path
        or place.startswith((f"{path}.", f"{path}["))
        or path.startswith((f"{place}.", f"{place}["))
        for place in (problem.path for problem in problems)
        if place
    )


def _has_no_grammar(error: InputError) -> bool:
    """Whether an error lacks its rule, its value or its way out, which begins with a verb."""
    vague = re.search(r"\b(Input should|pydantic|NoneType|Traceback|<class)\b", str(error))
    return bool(vague) or not (error.must and error.got and begins_with_a_verb(error.fix))


@cache
def _usual() -> set[str]:
    """What is said of the development environment as it is."""
    return {*map(str, planned().warnings)}


def _judged_entry(path: str, value: Any) -> tuple[list[Problem], Planned]:
    """What is said of the development environment with one other value, and not without it."""
    found = planned(at(path, value))
    said = (*found.errors, *found.warnings)
    return [problem for problem in said if str(problem) not in _usual()], found


@pytest.mark.parametrize("rows", _shares(bad_entries.ROWS))
def test_a_bad_value_of_a_stack_file_is_named_where_it_stands(rows: list[Any]) -> None:
    missed, vague = [], []
    for path, value, *elsewhere in rows:
        said, found = _judged_entry(path, value)
        where = f"environment.{elsewhere[0] if elsewhere else path}"
        missed += [] if _said_at(said, where) else [(path, str(value)[:60], [*map(str, said)])]
        vague += [str(error) for error in found.errors if _has_no_grammar(error)]
    assert missed == [] and vague == []


def _manifest(file: str, steps: tuple[Any, ...], value: Any) -> tuple[str, list[Any]]:
    """A file with one other value, and the steps to it."""
    made = copy.deepcopy(bad_manifests.FILES[file])
    place: Any = made
    found = [int(each) if str(each).isdecimal() else each for each in steps if each != ""]
    *way, last = found
    for step in way:
        if isinstance(place, dict):
            place.setdefault(step, {})
        place = place[step]
    if value is bad_manifests.REMOVED:
        del place[last]
    elif isinstance(place, list) and last == len(place):
        place.append(value)
    else:
        place[last] = value
    return yaml.safe_dump(made, sort_keys=False), found


def _judged_file(text: str, folder: Path, **entry: Any) -> Planned:
    """A file as the job of the development environment."""
    (folder / "job.yaml").write_text(text)
    job = {"manifest": "job.yaml", "pool": "g6e", "claims": {"fsx": "scratch"}} | entry
    operator = at("training_operator", {"version": "1.8.1"})
    return planned(at("jobs", {"x": job}), operator, folder=folder)


@pytest.mark.parametrize("rows", _shares(bad_manifests.ROWS))
def test_a_bad_value_of_a_yaml_job_is_named_where_it_stands(
    rows: list[Any], tmp_path: Path
) -> None:
    missed, vague = [], []
    for file, steps, value, *elsewhere in rows:
        text, found = _manifest(file, steps, value)
        judged = _judged_file(text, tmp_path)
        said = [each for each in (*judged.errors, *judged.warnings) if each.file == "job.yaml"]
        shown = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}"
            for step in (elsewhere[0] if elsewhere else found)
        )
        hit = _said_at(said, shown.lstrip(".")) if shown else said
        missed += [] if hit else [(file, shown, value, [*map(str, said)])]
        vague += [str(error) for error in judged.errors if _has_no_grammar(error)]
    assert missed == [] and vague == []


@pytest.mark.parametrize("file", bad_manifests.FILES)
def test_the_files_that_the_bad_ones_are_made_of_are_sound(file: str, tmp_path: Path) -> None:
    judged = _judged_file(yaml.safe_dump(bad_manifests.FILES[file]), tmp_path)
    assert [*map(str, judged.errors)] == []
    said = [str(each) for each in judged.warnings if each.file == "job.yaml"]
    assert [each for each in said if NO_SHM not in each] == []


def test_the_corpora_are_large() -> None:
    """With the tables of single rules, which have tests of their own."""
    assert len(bad_entries.ROWS) + len(bad_manifests.ROWS) >= 350
    assert len(environment.REFUSED) + len(jobs.REFUSED) >= 200


HERE = Path(__file__).parent


def cases_of(pattern: str) -> dict[str, str]:
    """What stands behind each `#= name` of the files here → its text."""
    return {
        found[1]: found[2]
        for file in sorted(HERE.glob(pattern))
        for found in re.finditer(r"(?m)^#= (.*)\n((?:(?!#= ).*\n?)*)", file.read_text())
    }


STACKS, JOBS = cases_of("sound_stacks.yaml"), cases_of("sound_jobs_of_*.yaml")
VALID = [*WORKLOADS.glob("valid/*.yaml")]
"""Judged in tests/trainyard/manifests/test_rules.py."""


@pytest.mark.parametrize("case", STACKS)
def test_a_stack_file_in_anybody_s_style_has_no_error(case: str, tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    (tmp_path / "Pulumi.x.yaml").write_text(STACKS[case])
    found = plan_stack(read_file("x", tmp_path), tmp_path, now=NOW)
    assert [*map(str, found.errors)] == [] and found.plan is not None


@pytest.mark.parametrize("case", JOBS)
def test_a_yaml_job_in_anybody_s_style_has_no_error(case: str) -> None:
    """Warnings are of what is really not known, and nowhere else."""
    workloads, errors = read_manifest(JOBS[case], "job.yaml")
    said = [*errors, *manifest_problems(contexts_of(workloads))]
    true_of_some = ("the image's own entrypoint", "restarts for ever", "begin at step 0")
    assert [str(e) for e in said if not any(words in str(e) for words in true_of_some)] == []


def _styles(values: dict[str, Any]) -> dict[str, str]:
    """The same stack file as several people write it."""
    whole = {"config": values}
    return {
        "flow": yaml.safe_dump(whole, default_flow_style=True, width=10_000),
        "folded and sorted": yaml.safe_dump(whole, width=60, indent=4),
        "JSON": json.dumps(whole),
        "commented": "# a\n---\n"
        + yaml.safe_dump(whole, sort_keys=False).replace("\n", "  # a\n", 1),
    }


@pytest.mark.parametrize("style", _styles({}))
def test_every_sound_stack_file_is_read_alike_in_every_style(style: str) -> None:
    sound = environment.SOUND | jobs.SOUND
    assert len(sound) + len(STACKS) >= 60 and len(JOBS) + len(VALID) >= 60
    for name, edits in sound.items():
        made = values(*edits)
        [document], errors = read_documents(_styles(made)[style], "x.yaml")
        assert errors == () and document.value == {"config": made}, name


def test_two_jobs_that_make_objects_of_one_name_are_refused(tmp_path: Path) -> None:
    """Two files, or a file and an entry."""
    text = yaml.safe_dump(bad_manifests.FILES["PyTorchJob"])
    for name in ("one.yaml", "two.yaml"):
        (tmp_path / name).write_text(text)
    entry = {"manifest": "one.yaml", "pool": "g6e"}
    operator = at("training_operator", {"version": "1.8.1"})
    both = {"a": entry, "b": entry | {"manifest": "two.yaml"}}
    [error] = planned(at("jobs", both), operator, folder=tmp_path).errors
    assert error.path == "environment.jobs.b.manifest" and error.got == "two.yaml"
    assert error.fix == "write another metadata.name in two.yaml"
    apart = both | {"b": entry | {"manifest": "two.yaml"}}
    (tmp_path / "two.yaml").write_text(text.replace("name: train\n", "name: other\n"))
    assert planned(at("jobs", apart), operator, folder=tmp_path).errors == ()


def test_a_runtime_of_the_file_is_found_by_its_kind(tmp_path: Path) -> None:
    own = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "mine"},
        "spec": {"template": {"spec": {"replicatedJobs": []}}},
    }
    job = copy.deepcopy(bad_manifests.FILES["TrainJob"])
    job["spec"]["runtimeRef"] = {"name": "mine"}
    errors = _judged_file(yaml.safe_dump_all([own, job]), tmp_path).errors
    [found] = [each for each in errors if each.path == "spec.runtimeRef.name"]
    assert found.fix.startswith("write kind: TrainingRuntime beside it")
