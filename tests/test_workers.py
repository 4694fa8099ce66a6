"""Who runs which tests of `make test`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import workers
from tests.support.recording import CHECKOUT

PLANTED = """
import os, pytest
@pytest.mark.parametrize("n", range(3))
def test_it(n):
    with open("ran", "a") as file:
        file.write(f"{os.environ['PYTEST_XDIST_WORKER']} {os.path.relpath(__file__)}\\n")
"""
CONFTEST = """
from tests.conftest import pytest_collection_modifyitems, pytest_xdist_make_scheduler
"""


def test_files_that_share_something_have_one_worker_and_the_longest_go_first(
    tmp_path: Path,
) -> None:
    together = [f"tests/graph/test_{name}.py" for name in "abcdef"]
    for file in (*together, "tests/controllers/test_admission.py", "tests/a/test_b.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(PLANTED)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    words = ("-n3", "--dist=loadfile", "--no-loadscope-reorder", "--import-mode=importlib")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, "-c", os.devnull]
        + [f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert len(ran) == 24
    by = {file: {worker for worker, other in ran if other == file} for _, file in ran}
    assert all(len(found) == 1 for found in by.values()), "a file has one worker"
    assert len({*map(tuple, (by[file] for file in together))}) == 1
    assert len({worker for worker, _ in ran}) == 3


def test_a_unit_that_is_named_has_tests_and_the_longest_is_not_last() -> None:
    for start in (*workers.TOGETHER, *workers.LONGEST):
        assert any(str(file.relative_to(CHECKOUT)).startswith(start) for file in FILES), start

    class Item:
        def __init__(self, nodeid: str) -> None:
            self.nodeid = nodeid

    items = [Item(f"{file}::test") for file in ("tests/a.py", "tests/graph/b.py", "tests/a.py")]
    workers.in_order(items)  # type: ignore[arg-type]
    assert [each.nodeid for each in items] == [
        "tests/graph/b.py::test",
        "tests/a.py::test",
        "tests/a.py::test",
    ]


FILES = [*CHECKOUT.glob("tests/**/test_*.py")]
