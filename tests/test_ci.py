"""What CI asks of its machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import skips
from tests.support.recording import CHECKOUT


def test_ci_does_not_pass_on_a_machine_that_can_hold_no_world(tmp_path: Path) -> None:
    assert "export TRAINYARD_REQUIRE_WORLD=1" in (CHECKOUT / ".ci/run").read_text()
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", __file__]
    variables = {"TRAINYARD_REQUIRE_WORLD": "1", "HOME": os.environ["HOME"]}
    for path, status, said in (
        (os.environ["PATH"], 0, "tests collected"),
        (str(tmp_path), 2, "unshare, ip, mount not found"),
    ):
        done = subprocess.run(
            words, cwd=CHECKOUT, env=variables | {"PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == status and said in done.stdout, done.stdout + done.stderr


PLANTED = """
import pytest

@pytest.mark.skipif(True, reason="promtool is not built")
def test_an_alert(): ...

def test_a_fixture_that_skips(request): pytest.skip("no torch: make train-real installs it")

@pytest.mark.xfail
def test_a_known_fault(): assert False
"""


@pytest.mark.parametrize(
    ("required", "workers", "whole_file", "status"),
    [("1", "0", False, 1), ("1", "2", False, 1), ("1", "0", True, 2), ("0", "0", True, 0)],
)
def test_ci_fails_on_a_skip_that_nobody_allowed_and_on_no_other(
    required: str, workers: str, whole_file: bool, status: int, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_planted.py").write_text(PLANTED)
    (tmp_path / "tests/test_whole_file.py").write_text(
        "import pytest\npytest.importorskip('nothing_that_exists')\n" * whole_file
    )
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"-n{workers}"]
    done = subprocess.run(
        [*words, "--import-mode=importlib", f"--rootdir={tmp_path}", "-c", os.devnull, tmp_path],
        cwd=CHECKOUT,
        env=os.environ | {"TRAINYARD_REQUIRE_WORLD": required, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status, done.stdout + done.stderr
    said = (
        "::test_an_alert: must run in CI; got Skipped: promtool is not built",
        "/test_whole_file.py: must run in CI; got Skipped: could not import 'nothing_that_exists'",
        "1 skipped, 1 xfailed, 1 error",
        "3 skipped, 1 xfailed",
    )
    seen = [number for number, words in enumerate(said) if words in done.stdout]
    assert seen == {0: [3], 1: [0, 2], 2: [1]}[status], done.stdout


def test_every_allowed_skip_has_a_reason_and_is_of_a_test_that_exists() -> None:
    assert len(skips.allowed()) > 5
    for row in skips.allowed():
        file, _, test = row.tests.partition("::")
        assert len(row.why.split()) > 5, row
        if file != "tests/*":
            name = re.split(r"[\[*]", test)[0]
            assert f"def {name}" in (CHECKOUT / file).read_text(), row


def test_programs_that_a_test_starts_keep_their_bytecode() -> None:
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ and not sys.dont_write_bytecode
