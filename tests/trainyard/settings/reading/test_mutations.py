"""Whatever bytes a file has, reading it ends soon, in bounded memory, and never in a traceback."""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy_pack.configured import chosen, read_config
from policy_pack.policies import RULES
from tests.support.everything import everything
from tests.support.recording import CHECKOUT, WORKLOADS
from tests.support.stackfile import at, planned, reading
from tests.support.tool import run_word
from trainyard.decide import plan_stack
from trainyard.manifests.stack_jobs import read_jobs
from trainyard.settings.job import ManifestConfig
from trainyard.settings.reading.reader import read_file

WHOLE = yaml.safe_dump({"config": everything()}, sort_keys=False)
EXPLODING = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 400))
FILES: dict[str, bytes] = {
    "UTF-16": WHOLE.encode("utf-16"),
    "Latin 1": "config: {a: é}".encode("latin-1"),
    "NUL": b"config:\n  a: \x00b\n",
    "zeros": b"\x00" * 5_000_000,
    "aliases that explode": b"config:\n" + EXPLODING.encode().replace(b"\na", b"\n a"),
    "an alias inside its anchor": b"config: &a\n  b: *a\n",
    "a list inside itself": b"config: {a: &a [*a]}",
    "a merge of itself": b"config: &a\n  <<: *a\n",
    "a chain of aliases": CHAIN.encode(),
    "brackets": b"config: " + b"[" * 100_000,
    "braces": b"config: " + b"{a: " * 20_000,
    "dashes": b"config:\n" + b"- " * 5_000 + b"a",
    "a long line": b"config: {a: " + b"x" * 1_000_000 + b"}",
    "many values": b"config: {a: [" + b"1," * 200_000 + b"]}",
    "a number of many digits": b"config: {trainyard:environment: {zone: " + b"9" * 9_000 + b"}}",
    "a text of many digits": b"config: {trainyard:environment: {zone: '" + b"9" * 9_000 + b"'}}",
    "a launcher with a number of many digits": (
        b"kind: TrainJob\nmetadata: {name: x}\nspec: {trainer: {command: [torchrun, --nnodes="
        + b"9" * 9_000
        + b", --nproc_per_node=2, a.py]}}\n"
    ),
    "an amount of many zeros": (
        b"kind: TrainJob\nmetadata: {name: x}\nspec: {trainer: {image: 'a/b:1', command: [python, a.py],"
        b" resourcesPerNode: {limits: {memory: 1e99999999}}}}\n"
    ),
    "tags of values that are none": b"config: {a: !!int '', b: !!bool often, c: !!float x, d: !!timestamp y}",
    "a tag alone": b"!!int ",
    "a date that is none": b"config: {aws:region: 2026-99-99}",
    "documents": b"config: {}\n---\nconfig: {}\n",
    "an empty file": b"",
}


def _reads(folder: Path, content: bytes) -> Any:
    (folder / "Pulumi.x.yaml").write_bytes(content)
    return plan_stack(read_file("x", folder), CHECKOUT)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    return tmp_path


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_is_hard_to_read_is_an_error_of_a_few_lines(kind: str, folder: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = _reads(folder, FILES[kind])
    assert kind == "UTF-16" or found.errors
    assert len("\n".join(map(str, found.errors))) < 4_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


@pytest.mark.parametrize("kind", FILES)
def test_a_manifest_that_is_hard_to_read_is_no_traceback(kind: str, folder: Path) -> None:
    (folder / "job.yaml").write_bytes(FILES[kind])
    assert run_word("migrate", [str(folder / "job.yaml")]) in (0, 1)


@pytest.mark.parametrize("text", ["", "[", "a: b", "- a", "name:", "name: []"])
def test_a_broken_project_file_is_one_error(text: str, folder: Path) -> None:
    (folder / "Pulumi.yaml").write_text(text)
    [error] = _reads(folder, WHOLE.encode()).errors
    assert error.where == "name [Pulumi.yaml]" and error.fix == "write name: trainyard"


@pytest.mark.parametrize("stack", ["a" * 300, "/a/b", "../b", ".."])
def test_a_stack_whose_file_cannot_be_is_said_to_have_none(
    stack: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(folder)
    assert run_word("check", [stack]) == 2 and "no stack file" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["a" * 300, "../job.yaml", "/etc/passwd", "a\0b", "link.yaml"])
@pytest.mark.parametrize("setting", ["manifest", "files"])
def test_a_file_outside_the_checkout_is_refused(name: str, setting: str, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("kind: TrainJob\n")
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "job.yaml")
    job = {"manifest": name, "pool": "g6e"}
    edit = at("jobs.x", job) if setting == "manifest" else at("jobs.t5-large.files.sources", [name])
    found = planned(edit, folder=folder).errors
    path = "jobs.x.manifest" if setting == "manifest" else "jobs.t5-large.files.sources"
    assert [error.path for error in found] == [f"environment.{path}"]


# Mutations.

PIECES = [
    *(b"\x00", b"\xff", b"\t", b"\n", b"\r\n", b": ", b"- ", b"[", b"]", b"{", b"}", b"&a ", b"*a"),
    *(b"<<: ", b"!!int ", b"!x ", b"|", b">", b'"', b"'", b"# ", b"---\n", b"...\n", b"? ", b"%"),
    *(b"1e999", b"-1", b"0x1F", b"1_000", b"null", b"~", b"2026-01-01", b".nan", b"\xe2\x80\xa8"),
]


MOST_MIB = 300
"""Memory that reading mutations adds to the process at most."""


@contextmanager
def _bounded() -> Iterator[None]:
    """No more memory than MOST_MIB beyond what the process has had."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown >> 10 <= MOST_MIB, f"{grown >> 10} MiB more"


def _mutated(chance: random.Random, content: bytes) -> bytes:
    """The bytes with one to four changes."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(content) + 1)
        end = min(len(content), start + chance.choice([0, 1, 1, 5, 40, 400]))
        other = chance.choice([chance.choice(PIECES), b"", content[end : end + 30]])
        content = content[:start] + other * chance.choice([1, 1, 1, 50]) + content[end:]
    return content


def _survive(
    count: int, seed: int, sound: Callable[[random.Random], bytes], judge: Callable[[bytes], None]
) -> None:
    """Judge so many mutations. `sound`: chooses what is mutated."""
    chance = random.Random(seed)
    for number in range(count):
        content = _mutated(chance, sound(chance))
        try:
            judge(content)
        except Exception as error:
            raise AssertionError(f"mutation {number} of seed {seed}: {content!r}") from error


def _survives(folder: Path, count: int, seed: int) -> None:
    def judge(content: bytes) -> None:
        found = _reads(folder, content)
        assert (found.plan is None) == bool(found.errors)
        assert all(error.must and error.fix for error in found.errors)

    _survive(count, seed, lambda _: WHOLE.encode(), judge)


def _manifests_survive(folder: Path, count: int, seed: int) -> None:
    """Mutations of the sample manifests, judged as jobs of a stack and migrated."""
    samples = [path.read_bytes() for path in sorted(WORKLOADS.glob("valid/*.yaml"))]
    config = reading().config
    assert config and config.environment
    environment, file = config.environment, folder / "job.yaml"
    job = {"x": ManifestConfig(manifest="job.yaml", pool="g6e")}

    def judge(content: bytes) -> None:
        file.write_bytes(content)
        read_jobs("environment.jobs", job, environment, "training", folder)
        assert run_word("migrate", [str(file)]) in (0, 1)

    _survive(count, seed, lambda chance: chance.choice(samples), judge)


def test_no_mutation_of_a_manifest_is_a_traceback(folder: Path) -> None:
    with _bounded():
        _manifests_survive(folder, 200, seed=3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
def test_none_of_many_mutations_of_a_manifest_is_a_traceback(folder: Path, seed: int) -> None:
    with _bounded():
        _manifests_survive(folder, 1000, seed=100 + seed)


def test_no_mutation_of_a_file_is_a_traceback(folder: Path) -> None:
    with _bounded():
        _survives(folder, 60, seed=14)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_none_of_many_mutations_of_a_file_is_a_traceback(folder: Path, seed: int) -> None:
    with _bounded():
        _survives(folder, 1000, seed=100 + seed)


def _policies_survive(folder: Path, count: int, seed: int) -> None:
    """Mutations of a file that configures every policy."""
    every = {
        rule.name: {key: each["examples"][0] for key, each in rule.config.items()} for rule in RULES
    }
    whole = json.dumps(every | {"encrypted": "advisory", "all": "mandatory"}, indent=1).encode()

    def judge(content: bytes) -> None:
        file = folder / "config.json"
        file.write_bytes(content)
        configured, errors = read_config(file)
        assert errors or all(chosen(rule, configured) for rule in RULES)

    _survive(count, seed, lambda _: whole, judge)


def test_no_mutation_of_a_configuration_of_the_policies_is_a_traceback(folder: Path) -> None:
    with _bounded():
        _policies_survive(folder, 60, seed=5)


@pytest.mark.soak
def test_none_of_many_mutations_of_a_configuration_is_a_traceback(folder: Path) -> None:
    with _bounded():
        _policies_survive(folder, 2000, seed=100)
