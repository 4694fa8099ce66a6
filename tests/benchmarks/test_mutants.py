"""Which faults are drawn, and which tests are asked about one."""

from __future__ import annotations

import itertools
import random
import subprocess
from pathlib import Path
from typing import Any

from benchmarks import mutants
from benchmarks.faults import Fault
from tests.support.recording import CHECKOUT

SOURCE = "LIMIT = 5\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"
PATH = "components/jobs/jobs.py"


def _of(path: str, **given: Any) -> mutants.TestFile:
    values: dict[str, Any] = {
        "seconds": 1.0,
        "reached": frozenset({(PATH, 1), (PATH, 4), (PATH, 8)}),
    }
    return mutants.TestFile(path=path, **(values | given))


def _asked(line: int, *files: mutants.TestFile) -> list[str]:
    fault = Fault(kind="constant", line=line, start=0, end=0, text="")
    mutant = mutants.Mutant(path=PATH, fault=fault)
    measured = mutants.Measured(files=list(files), at_import=frozenset({(PATH, 1)}))
    return [found.path for found in mutants.tests_of(mutant, {PATH: SOURCE}, measured)]


def test_a_seed_draws_the_same_faults_again_and_none_twice() -> None:
    sources = {"trainyard/catalog/a.py": SOURCE, "trainyard/plans/b.py": SOURCE.replace("5", "6")}

    def draw(seed: int) -> list[mutants.Mutant]:
        return list(itertools.islice(mutants.drawn(sources, random.Random(seed)), 5))

    assert draw(1) == draw(1) != draw(2)
    assert len(set(draw(1))) == 5


def test_a_file_too_small_for_the_count_ends_the_draw() -> None:
    assert (
        len(list(mutants.drawn({"trainyard/catalog/a.py": "LIMIT = 5\n"}, random.Random(1)))) == 1
    )


def test_only_tests_that_run_the_faulty_line_are_asked() -> None:
    calls_f = _of(
        "tests/trainyard/catalog/aws/test_zones.py", reached=frozenset({(PATH, 1), (PATH, 5)})
    )
    calls_g = _of(
        "tests/trainyard/catalog/aws/test_prices.py", reached=frozenset({(PATH, 1), (PATH, 9)})
    )
    assert _asked(5, calls_f, calls_g) == [calls_f.path]
    assert _asked(9, calls_f, calls_g) == [calls_g.path]
    assert len(_asked(1, calls_f, calls_g)) == 2


def test_the_tests_named_as_the_source_are_asked_first() -> None:
    files = [
        _of("tests/trainyard/catalog/aws/test_zones.py"),
        _of("tests/components/jobs/test_jobs.py"),
    ]
    assert [Path(path).stem for path in _asked(1, *files)] == ["test_jobs", "test_zones"]


def test_every_golden_that_is_left_out_is_a_test() -> None:
    for name in mutants.WRITTEN_ANEW:
        path, _, test = name.partition("::")
        assert f"def {test}(" in (CHECKOUT / path).read_text()


def test_a_file_of_tests_says_which_lines_it_runs(tmp_path: Path) -> None:
    """A mark that pytest did not know once made every file fail, and each fault survive."""
    tests = "tests/trainyard/catalog/aws/test_zones.py"
    [found] = mutants.Copy(tmp_path).measured([tests]).files
    assert "trainyard/catalog/aws/zones.py" in {path for path, _ in found.reached}


def test_faults_are_drawn_from_every_file_of_the_product() -> None:
    """Folders in folders were once left out: half of the product."""
    listed = subprocess.check_output(
        ("git", "ls-files", "--cached", "*.py"), cwd=CHECKOUT, text=True
    ).splitlines()
    product = {path for path in listed if path.startswith(("components/", "stacks/", "trainyard/"))}
    assert product <= mutants.sources(CHECKOUT).keys()
