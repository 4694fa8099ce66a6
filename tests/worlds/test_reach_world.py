"""The README's stack file, as it stands, and its two steps to a private endpoint."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.support.recording import CHECKOUT
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, rehearsing

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]
[README] = re.findall(r"```yaml\n(.*?)```", (CHECKOUT / "README.md").read_text(), re.DOTALL)
PUBLIC = "public_access_cidrs: [203.0.113.7/32]"


@pytest.fixture(scope="module")
def trial() -> Iterator[Harness]:
    with rehearsing("readme", {"Pulumi.readme.yaml": README}) as made:
        assert made.do("up", "--stack", "readme") == 0, made.log.read_text()
        yield made


def _write(trial: Harness, endpoint: str) -> None:
    text = README.replace(PUBLIC, f"{endpoint}, tunnel_port: 18443")
    assert text != README
    (trial.checkout / "Pulumi.readme.yaml").write_text(text)


def test_the_stack_file_of_the_readme_reaches_complete(trial: Harness) -> None:
    assert trial.condition("hello") == "Complete"


def test_a_private_endpoint_answers_the_tunnel_and_nobody_else(trial: Harness) -> None:
    _write(trial, PUBLIC)
    assert trial.do("up", "--stack", "readme") == 0, trial.log.read_text()
    server = trial.shell("kubectl config view --minify --output jsonpath={..server}")
    opens = trial.shell("pulumi stack output tunnel").strip()
    tunnel = subprocess.Popen(
        ["/bin/bash", "-c", f"exec {opens}"],
        cwd=trial.checkout,
        env=dict(trial._session()),
        start_new_session=True,
    )
    try:
        _write(trial, "endpoint: private")
        time.sleep(3)
        assert trial.do("up", "--stack", "readme") == 0, trial.log.read_text()
        trial.do("kubeconfig", "--stack", "readme")
        assert trial.get("nodes")["items"]
        refused = trial.shell(f"curl --insecure --max-time 5 {server}/version", check=False)
        assert "curl: (" in refused
        trial.shell("pulumi preview --non-interactive --expect-no-changes")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tunnel.pid, signal.SIGTERM)  # the AWS CLI leaves its plugin running
