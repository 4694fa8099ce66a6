"""What CI asks of its machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.recording import CHECKOUT


def test_ci_does_not_pass_on_a_machine_that_can_hold_no_world(tmp_path: Path) -> None:
    assert "export TRAINYARD_REQUIRE_WORLD=1" in (CHECKOUT / ".ci/run").read_text()
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", __file__]
    variables = {"TRAINYARD_REQUIRE_WORLD": "1", "HOME": os.environ["HOME"]}
    for path, status, said in (
        (os.environ["PATH"], 0, "1 test"),
        (str(tmp_path), 2, "unshare, ip, mount not found"),
    ):
        done = subprocess.run(
            words, cwd=CHECKOUT, env=variables | {"PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == status and said in done.stdout, done.stdout + done.stderr
