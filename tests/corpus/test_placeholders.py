"""A placeholder that nobody filled in is one error, at its place, wherever it stands: nothing that follows
from the missing value, and no other line, is blamed."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from tests.corpus.bad_manifests import FILES
from tests.corpus.test_corpus import JOBS, VALID
from tests.corpus.test_kinds import MASTER
from tests.support.cases import environment, jobs
from tests.support.recording import CHECKOUT
from tests.support.stackfile import at, values
from trainyard.decide import plan_stack
from trainyard.manifests.blanks import Blank, agreed
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.manifests.rules import manifest_problems
from trainyard.problems import InputError, InputWarning, Problem
from trainyard.settings.reading.reader import read
from trainyard.settings.reading.yaml_file import read_documents

WORDS = ("${X_1}", "$X_1", "<X_1>", "{{ x.one }}", "%X_1%", "__X_1__", "REPLACE_ME")
SEED, SAMPLE = 38, 150
Path = tuple[str | int, ...]
MASTER_POD: Path = (0, "spec", "pytorchReplicaSpecs", "Master", "template", "spec")


@cache
def texts() -> dict[str, str]:
    found = {path.name: path.read_text() for path in VALID} | JOBS
    return found | {name: yaml.safe_dump(made) for name, made in FILES.items()}


def release_of(name: str) -> str:
    return "2.3.0" if "on-2.3" in name else "2.1.0"


def _judged(text: str, name: str) -> list[Problem]:
    workloads, errors = read_manifest(text, "x.yaml")
    release = release_of(name)
    said = agreed(workloads, lambda filled: manifest_problems(contexts_of(filled, release=release)))
    return [*errors, *said]


@cache
def documents_of(name: str) -> list[Any]:
    """Its documents, in which no value is another one by an alias."""
    found = [each.value for each in read_documents(texts()[name], name)[0]]
    return json.loads(json.dumps([each for each in found if isinstance(each, dict)]))


@cache
def _usual(name: str) -> tuple[str, ...]:
    """What is said of the file as it is, without lines."""
    return tuple(without_line(each) for each in _judged(_dumped(documents_of(name)), name))


def _dumped(documents: list[Any]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


def without_line(problem: Problem) -> str:
    return f"{problem.path}: {str(problem).partition(': ')[2]}"


def _leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict | list) and value:
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        for step, each in inside:
            yield from _leaves(each, (*path, step))
    elif value is not None and path:
        yield path


def _cases() -> list[tuple[str, Path, str]]:
    return [
        (name, path, word)
        for name in sorted(texts())
        for path in _leaves(documents_of(name))
        for word in WORDS
        if not (word.startswith("$") and {"command", "args"} & {*path})
    ]


def _fault(name: str, path: Path, word: str) -> list[str]:
    """What is said of the file with the word at the path, where it is not one error there alone."""
    made = copy.deepcopy(documents_of(name))
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = word
    said = _judged(_dumped(made), name)
    new = [each for each in said if without_line(each) not in _usual(name)]
    shown = Blank(path=path[1:], text=word).shown
    where = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in shown)
    errors = [each for each in new if isinstance(each, InputError)]
    alone = len(new) == 1 and errors and new[0].path == where.lstrip(".")
    return [] if alone and word in errors[0].got else [f"{name} {path} {word}", *map(str, new)]


def test_there_are_files_of_many_people() -> None:
    assert len(texts()) >= 40 and len(_cases()) > 5000


def test_a_placeholder_in_a_sound_file_is_one_error_at_its_place() -> None:
    cases = random.Random(SEED).sample(_cases(), SAMPLE)
    assert [fault for case in cases if (fault := _fault(*case))] == []


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("pytorchjob-simple.yaml", (*MASTER_POD, "containers", 0, "args", 1)),
        ("trainjob-shell-defaults.yaml", (0, "spec", "trainer", "command", 0)),
    ],
)
def test_a_placeholder_for_a_backend_or_a_shell_blames_nothing_else(name: str, path: Path) -> None:
    assert _fault(name, path, "<X_1>") == []


RAW: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # case: (what stands in the file, what stands there instead, the placeholders)
    "a value of Helm": ("replicas: 1", "replicas: {{ .Values.n }}", ("{{ .Values.n }}",)),
    "a value in a map": ("gpu: 8,", "gpu: ${GPUS},", ("${GPUS}",)),
    "a value that begins with a percent": ("replicas: 1", "replicas: %NUM%", ("%NUM%",)),
    "a value that begins with an at": ("replicas: 1", "replicas: @NUM@", ("@NUM@",)),
    "words in a list": (
        "[torchrun, --nproc_per_node=8, /app/train.py]",
        "[torchrun, --nproc_per_node={{ n }}, ${SCRIPT}]",
        ("{{ n }}", "${SCRIPT}"),
    ),
    "variables without a shell": (
        "--nproc_per_node=8, /app/train.py]",
        "--nproc_per_node=$GPUS, --nnodes=${NODES}, /app/train.py]",
        ("$GPUS", "${NODES}"),
    ),
    "a whole line": (
        "              image",
        "              {{- toYaml .x }}\n              image",
        ("{{- toYaml .x }}",),
    ),
    "a line for a person": (
        "              image",
        "              <MORE>\n              image",
        ("<MORE>",),
    ),
    "a key": ("restartPolicy: Never", "{{ x }}: Never", ("{{ x }}",)),
    "two in an image": (
        "registry.example.com/team/train:1",
        "${REGISTRY}/train:${TAG}",
        ("${REGISTRY}", "${TAG}"),
    ),
    "a name in a map": ("{name: train}", "{name: {{ name }}}", ("{{ name }}",)),
}


@pytest.mark.parametrize("case", RAW)
def test_a_placeholder_that_is_no_yaml_is_one_error_too(case: str) -> None:
    there, instead, found = RAW[case]
    said = _judged(MASTER.replace(there, instead, 1), "x.yaml")
    assert there in MASTER and all(isinstance(each, InputError) for each in said)
    assert [each.got for each in said if isinstance(each, InputError)] == [*found]
    assert {each.line for each in said} == {MASTER[: MASTER.index(there)].count("\n") + 1}


def test_a_variable_of_a_shell_and_text_of_a_script_are_no_placeholders() -> None:
    lines = ["- bash", "- -c", "- |", "  {{ x }}", "  ${CMD}", "  torchrun t.py"]
    block = "".join(f"\n                {line}" for line in lines)
    text = MASTER.replace("[torchrun, --nproc_per_node=8, /app/train.py]", block)
    assert [each for each in _judged(text, "x.yaml") if "placeholder" in str(each)] == []


OTHER_CHOICES: dict[str, Any] = {
    "storage.scratch.lustre": {"capacity_gib": 2400, "deployment": "SCRATCH_2"},
    "storage.scratch.lustre.efa": False,
    "storage.home": {"efs": {"throughput": "provisioned", "throughput_mibps": 100}},
    "cluster.upgrade_policy": "standard",
    "pools.g6e.capacity": "spot",
}
"""Setting → its value where another setting must or must not be there beside it."""
SOUND = {name: values(*edits) for name, edits in (environment.SOUND | jobs.SOUND).items()}
SOUND |= {f"{path} otherwise": values(at(path, value)) for path, value in OTHER_CHOICES.items()}
IN_TEXT = {"script", "command", "arguments", "env"}


def _of_stacks() -> list[tuple[str, Path, str]]:
    return [
        (name, path, word)
        for name, made in SOUND.items()
        for path in _leaves(made)
        for word in WORDS
        if path[0] != "aws:region" and not (word.startswith("$") and IN_TEXT & {*path})
    ]


def _stack_said(made: dict[str, Any]) -> list[Problem]:
    found = plan_stack(read(made, stack="dev", project="trainyard"), CHECKOUT)
    said: list[Problem] = [*found.errors, *found.warnings]
    return [each for each in said if "was not checked" not in str(each)]


@cache
def _usual_stack(name: str) -> set[str]:
    """Texts of the sound file, and the places of its warnings: a warning may name the value that the placeholder
    stands for."""
    said = _stack_said(SOUND[name])
    return {*map(str, said), *(each.path for each in said if isinstance(each, InputWarning))}


def _is_new(problem: Problem, usual: set[str]) -> bool:
    known = isinstance(problem, InputWarning) and problem.path in usual
    return not known and str(problem) not in usual


def _fault_of_stack(name: str, path: Path, word: str) -> list[str]:
    made = copy.deepcopy(SOUND[name])
    place: Any = made
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = word
    new = [each for each in _stack_said(made) if _is_new(each, _usual_stack(name))]
    where = ".".join(map(str, path)).removeprefix("trainyard:")
    alone = len(new) == 1 and isinstance(new[0], InputError) and new[0].path == where
    return (
        [] if alone and "placeholder" in str(new[0]) else [f"{name} {where} {word}", *map(str, new)]
    )


def test_a_placeholder_in_a_sound_stack_file_is_one_error_at_its_place() -> None:
    cases = random.Random(SEED).sample(_of_stacks(), SAMPLE)
    assert [fault for case in cases if (fault := _fault_of_stack(*case))] == []


def test_a_placeholder_in_a_choice_asks_for_nothing_beside_it() -> None:
    cases = [
        case for case in _of_stacks() if case[0].endswith(" otherwise") and "storage" in case[1]
    ]
    assert len(cases) > 50
    assert [fault for case in cases if (fault := _fault_of_stack(*case))] == []


@pytest.mark.soak
@pytest.mark.parametrize("word", WORDS)
def test_every_placeholder_in_every_sound_stack_file_is_one_error(word: str) -> None:
    cases = [case for case in _of_stacks() if case[2] == word]
    assert [fault for case in cases if (fault := _fault_of_stack(*case))] == []


@pytest.mark.soak
@pytest.mark.parametrize("word", WORDS)
def test_every_placeholder_in_every_sound_file_is_one_error_at_its_place(word: str) -> None:
    cases = [case for case in _cases() if case[2] == word]
    assert [fault for case in cases if (fault := _fault(*case))] == []
