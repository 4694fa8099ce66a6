"""Plant faults of one line in a copy of the checkout, and ask the fast tests whether they notice.

A golden does not count: it says that something changed, not that it is wrong.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from benchmarks.faults import Fault, faults, is_another_program
from benchmarks.measure import CHECKOUT
from tests.support.parts import Part
from tests.support.parts import part as as_part
from trainyard import command_line

PRODUCT = ("components", "stacks", "trainyard")
"""Folders with all that is in them. Every file is as likely as every other, and in a file every kind of
fault."""
FAST = (
    *("components", "corpus", "graph", "stacks", "trainyard"),
    "rehearsal/providers/test_lookups.py",
)
"""Of tests/, what needs no rehearsal and runs the product in its own process."""
WRITTEN_ANEW = (
    "tests/trainyard/settings/reading/test_reader.py::test_the_schema_in_docs_is_the_one_that_the_types_give",
    "tests/trainyard/reports/test_reference.py::test_the_page_in_docs_is_the_one_that_the_types_give",
    "tests/trainyard/reports/test_plan.py::test_the_picture_in_the_documents_is_of_the_checkouts_stack",
)
"""Goldens, as are the recorded graphs: one command writes them anew."""
SLOW = ("world", "apart", "soak")
"""Marks of tests that are not asked."""
LIBRARIES = ("pulumi", "pydantic", "hypothesis", "jsonschema", "botocore", "google", "yaml")
"""Modules that load slowly. They are loaded here, when tests need them for the first time: the
process of the tests is a fork of this one."""
OURS = ("benchmarks", "tests", "trainyard")
"""Modules of the checkout that this program imports, and that a test must import from the copy."""
BAR = 0.97
"""Of the faults, how many must be killed."""
TIMED_OUT = -signal.SIGALRM
LIKELIEST = 40
"""Files of tests that are asked about a line that runs when its module is loaded. Hundreds run something of such a
module, and half an hour would go by for each fault that none notices."""
ALL_SLOW = 5
"""pytest's exit code where no test is left (ExitCode.NO_TESTS_COLLECTED)."""


@dataclass(frozen=True, kw_only=True)
class TestFile:
    """Result of one file of tests where nothing is wrong."""

    path: str
    seconds: float
    reached: frozenset[tuple[str, int]]
    """Statements of the product that it runs: file and first line."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Results of all files of tests where nothing is wrong."""

    files: list[TestFile]
    at_import: frozenset[tuple[str, int]]
    """Statements that run when the product is loaded, before any test."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault in a file."""

    path: str
    fault: Fault

    def __str__(self) -> str:
        return f"{self.path}:{self.fault.line}"


class Copy:
    """A copy of the checkout, in which faults are planted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stamp = int(time.time())
        listed = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
        for name in subprocess.check_output(listed, cwd=CHECKOUT, text=True).splitlines():
            if (CHECKOUT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, folder / name)
        (folder / ".venv").symlink_to((CHECKOUT / ".venv").resolve())

    def write(self, path: str, text: str) -> None:
        """Write a source with a time of its own: Python must not take the fault before for it."""
        (self.folder / path).write_text(text)
        self._stamp += 2
        os.utime(self.folder / path, (self._stamp, self._stamp))

    def test_files(self) -> list[str]:
        tests = self.folder / "tests"
        found = {path for room in FAST for path in (tests / room).rglob("test_*.py")}
        found |= {tests / file for file in FAST if file.endswith(".py")}
        return sorted(str(path.relative_to(self.folder)) for path in found)

    def measured(self, paths: list[str]) -> Measured:
        """Results of the files that pass without a fault; the others are printed, but those whose tests are all
        slow."""
        notes = self.folder / "notes.jsonl"
        self._in_a_process(lambda: self._note_all(paths, notes), 7200)
        told = [json.loads(line) for line in notes.read_text().splitlines()]
        for path in (one["path"] for one in told[1:] if one["code"] not in (0, ALL_SLOW)):
            print(f"  fails without a fault: {path}", flush=True)
        for module in told[0]["libraries"]:
            importlib.import_module(module)
        files = [
            TestFile(path=one["path"], seconds=one["seconds"], reached=_lines(one["reached"]))
            for one in told[1:]
            if not one["code"]
        ]
        files.sort(key=lambda tests: tests.seconds)
        return Measured(files=files, at_import=_lines(told[0]["reached"]))

    def outcome(self, tests: TestFile) -> int:
        """Exit code of the tests; TIMED_OUT after 20 times what they take without a fault."""
        return self._in_a_process(lambda: _pytest(tests.path), 120 + 20 * int(tests.seconds))

    def _note_all(self, paths: list[str], notes: Path) -> int:
        """The product is loaded once, with its notes: each file of tests runs in a fork of that."""
        reached = noted_in(self.folder)
        support = sorted((self.folder / "tests" / "support").glob("*.py"))
        for path in [*sources(self.folder), *(f"tests/support/{file.name}" for file in support)]:
            with contextlib.suppress(Exception):
                importlib.import_module(path.removesuffix(".py").replace("/", "."))
        libraries = [name for name in sys.modules if name.startswith(LIBRARIES)]
        with notes.open("a") as file:
            print(json.dumps({"reached": sorted(reached), "libraries": libraries}), file=file)
        for path in paths:
            reached.clear()
            child = os.fork()
            if not child:
                started = time.monotonic()
                told = {"path": path, "code": _pytest(path), "seconds": time.monotonic() - started}
                with notes.open("a") as file:
                    print(json.dumps({**told, "reached": sorted(reached)}), file=file)
                os._exit(0)
            os.waitpid(child, 0)
        return 0

    def _in_a_process(self, work: Callable[[], int], limit: int) -> int:
        """The exit code of a fork that has loaded nothing of ours."""
        child = os.fork()
        if not child:
            os.setsid()
            signal.alarm(limit)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.chdir(self.folder)
            sys.dont_write_bytecode = False
            sys.path[:] = [
                str(self.folder),
                *(p for p in sys.path if Path(p).resolve() != CHECKOUT),
            ]
            for name in [name for name in sys.modules if name.startswith(OURS)]:
                del sys.modules[name]
            try:
                os._exit(work())
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)


def noted_in(folder: Path) -> set[tuple[str, int]]:
    """From now on the product's modules in the folder note here each statement that they run."""
    reached: set[tuple[str, int]] = set()
    files = {f"{folder / path}": path for path in sources(folder)}
    as_written = SourceFileLoader.source_to_code

    def noting(self: SourceFileLoader, data: Any, path: Any, **given: Any) -> Any:
        tree = ast.parse(data)
        if path in files:
            _note(tree, files[path])
        return as_written(self, ast.fix_missing_locations(tree), path, **given)

    SourceFileLoader.source_to_code = noting
    builtins.note_reached = reached.add  # pyright: ignore
    sys.dont_write_bytecode = False
    sys.pycache_prefix = f"{folder}/noted"
    return reached


def _lines(told: list[list[Any]]) -> frozenset[tuple[str, int]]:
    return frozenset((file, line) for file, line in told)


def _note(node: ast.AST, path: str) -> None:
    for name, statements in ast.iter_fields(node):
        if not isinstance(statements, list):
            continue
        for part in statements:
            if isinstance(part, ast.AST):
                _note(part, path)
        if statements and isinstance(statements[0], ast.stmt):
            noted = [
                (s, ast.parse(f"note_reached(({path!r}, {s.lineno}))").body[0]) for s in statements
            ]
            setattr(
                node,
                name,
                [part for s, call in noted for part in ([s] if _comes_first(s) else [call, s])],
            )


def _comes_first(statement: ast.stmt) -> bool:
    """A docstring, and what Python wants at the top of a module."""
    future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    return future or isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _pytest(path: str) -> int:
    import pytest

    without = [option for test in WRITTEN_ANEW for option in ("--deselect", test)]
    slow = f"not ({' or '.join(SLOW)})"
    options = ("-qx", "-W", "ignore", "-p", "no:cacheprovider", "-m", slow, "--golden")
    return int(pytest.main([*options, *without, path]))


def sources(folder: Path) -> dict[str, str]:
    """The product's sources by path."""
    found = (path for room in PRODUCT for path in sorted((folder / room).rglob("*.py")))
    return {str(path.relative_to(folder)): path.read_text() for path in found}


def drawn(found: Mapping[str, str], chance: random.Random) -> Iterator[Mutant]:
    """Mutants of the sources, until none is left."""
    left = {path: faults(source) for path, source in found.items()}
    while left := {path: some for path, some in left.items() if some}:
        path = chance.choice([*left])
        kind = chance.choice(sorted({fault.kind for fault in left[path]}))
        fault = chance.choice([fault for fault in left[path] if fault.kind == kind])
        left[path].remove(fault)
        if is_another_program(found[path], fault):
            yield Mutant(path=path, fault=fault)


def tests_of(mutant: Mutant, found: Mapping[str, str], measured: Measured) -> list[TestFile]:
    """Files whose tests run the faulty line, the likeliest first: those named as the source, those
    that import it themselves, the others in the order of `files`. Of a line that runs when its module is loaded,
    the likeliest of those whose tests run anything in that module, or in one that imports it."""
    line = _statement(mutant, found[mutant.path])
    stem = Path(mutant.path).stem
    module = mutant.path.removesuffix(".py").replace("/", ".")
    named = re.compile(rf"{module}\b|from {module.rpartition('.')[0]} import .*\b{stem}\b")
    users = {mutant.path} | {path for path, text in found.items() if named.search(text)}
    loaded = (mutant.path, line) in measured.at_import

    def concerned(tests: TestFile) -> bool:
        runs = (mutant.path, line) in tests.reached
        return runs or loaded and any(path in users for path, _ in tests.reached)

    def unlikely(tests: TestFile) -> tuple[bool, bool]:
        mirrored = Path(tests.path).stem == f"test_{stem}"
        imports = named.search((CHECKOUT / tests.path).read_text()) is not None
        return not mirrored, not imports

    asked = sorted(filter(concerned, measured.files), key=unlikely)
    return asked[:LIKELIEST] if loaded else asked


def _statement(mutant: Mutant, source: str) -> int:
    """First line of the innermost statement that has the fault."""
    lines = [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= mutant.fault.line <= (node.end_lineno or 0)
    ]
    return max(lines)


def judged(
    mutant: Mutant, found: Mapping[str, str], measured: Measured, copy: Copy
) -> tuple[str, str]:
    """The fate of the mutant, killed, survived or hanging, and the tests that say so. A file that
    kills moves to the front of `files`: it is likely to kill again."""
    source, files = found[mutant.path], measured.files
    copy.write(mutant.path, mutant.fault.planted(source))
    try:
        hung = ""
        for tests in tests_of(mutant, found, measured):
            code = copy.outcome(tests)
            if code == TIMED_OUT:
                hung = tests.path
            elif code:
                files.remove(tests)
                files.insert(0, tests)
                return "killed", tests.path
        return ("hangs", hung) if hung else ("SURVIVES", "")
    finally:
        copy.write(mutant.path, source)


def main(arguments: list[str]) -> int:
    """0 where at least BAR of the faults were killed."""
    parser = command_line.parser(
        "benchmarks.mutants",
        "Plant one-line faults in a copy of the checkout and print those that no fast test notices.",
    )
    parser.add_argument("--count", type=int, default=150, help="faults to plant; 150 by default")
    parser.add_argument("--seed", type=int, help="the seed of an earlier run, for the same faults")
    parser.add_argument(
        "--only", default="", metavar="PATH", help="plant in this folder or file only"
    )
    parser.add_argument(
        "--part",
        type=as_part,
        default=Part(1, 1),
        metavar="n/N",
        help="plant the n-th of N parts only",
    )
    given = parser.parse_args(arguments)
    seed = random.randrange(10**6) if given.seed is None else given.seed
    again = f"python -m benchmarks.mutants --seed {seed} --count {given.count}"
    again += f" --only {given.only}" * bool(given.only)
    again += f" --part {given.part}" * (given.part.count > 1)
    found = {path: text for path, text in sources(CHECKOUT).items() if path.startswith(given.only)}
    if not found:
        parser.error(f"--only {given.only}: the path of no file of the product begins so")
    print(f"{again}\nfirst the tests without a fault, some minutes", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Copy(Path(folder))
        measured = copy.measured(copy.test_files())
        mutants = [*itertools.islice(drawn(found, random.Random(seed)), given.count)]
        rows = [_row(each, found, measured, copy) for each in given.part.of(mutants)]
    return _summed_up(rows, again)


def _row(
    mutant: Mutant, found: Mapping[str, str], measured: Measured, copy: Copy
) -> tuple[str, ...]:
    said, by = judged(mutant, found, measured, copy)
    print(f"  {said:8}  {mutant}  {mutant.fault.kind}  {by}", flush=True)
    return said, str(mutant), mutant.fault.kind, _difference(mutant, found[mutant.path])


def _difference(mutant: Mutant, source: str) -> str:
    """The first line that the fault changes, before and after."""
    lines = source.splitlines(), mutant.fault.planted(source).splitlines()
    before, after = next(
        pair for pair in itertools.zip_longest(*lines, fillvalue="") if pair[0] != pair[1]
    )
    return f"- {before.strip()}  + {after.strip()}"


def _summed_up(rows: list[tuple[str, ...]], again: str) -> int:
    alive = [row for row in rows if row[0] != "killed"]
    killed = len(rows) - len(alive)
    print("\n".join(command_line.table(alive)) if alive else "no survivor")
    print(f"{killed} of {len(rows)} killed, {killed / len(rows):.1%}")
    if alive:
        print(f"Next: write a test that says why each line matters, then {again}")
    return int(killed < BAR * len(rows))


if __name__ == "__main__":
    command_line.run(main)
