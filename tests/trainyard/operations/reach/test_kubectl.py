"""One login for many calls."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from trainyard.operations.reach import kubectl

PLUGIN = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": sys.executable,
    "env": [{"name": "A", "value": "b"}],
    "args": ["-c", "import os; print('{\"status\": {\"token\": \"' + os.environ['A'] + '\"}}')"],
}


def _environment(folder: Path, user: dict[str, Any]) -> dict[str, str]:
    """A kubectl first on PATH that shows a kubeconfig with this user."""
    config = {"current-context": "c", "users": [{"name": "me", "user": user}]}
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{json.dumps(config)}\nEOF\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "KUBECONFIG": "before"}


def test_a_program_that_gives_tokens_is_asked_once_and_nobody_else_reads_its_token(tmp_path: Path):
    environment = _environment(tmp_path, {"exec": PLUGIN})
    made = kubectl.login(environment, tmp_path)()
    assert {**made, "KUBECONFIG": "before"} == environment
    file = Path(made["KUBECONFIG"])
    written = json.loads(file.read_text())
    assert written["current-context"] == "c" and written["users"] == [
        {"name": "me", "user": {"token": "b"}}
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(("seconds", "asked"), [(60, 1), (0, 3)])
def test_it_is_asked_anew_before_its_token_ends(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seconds: int, asked: int
):
    """A repair may wait half an hour for what AWS still makes."""
    monkeypatch.setattr(kubectl, "TOKEN_SECONDS", seconds)
    counted = f"open({str(tmp_path / 'asked')!r}, 'a').write('x'); {PLUGIN['args'][1]}"
    login = kubectl.login(
        _environment(tmp_path, {"exec": PLUGIN | {"args": ["-c", counted]}}), tmp_path
    )
    for _ in range(3):
        login()
    assert (tmp_path / "asked").read_text() == "x" * asked


@pytest.mark.parametrize(
    "user",
    [
        {"token": "t"},
        {"exec": PLUGIN | {"command": "/nowhere"}},
        {"exec": PLUGIN | {"args": ["-c", "print(1 / 0)"]}},
        {"exec": PLUGIN | {"args": ["-c", "print('{}')"]}},
    ],
)
def test_other_credentials_are_left_to_kubectl(tmp_path: Path, user: dict[str, Any]):
    environment = _environment(tmp_path, user)
    assert kubectl.login(environment, tmp_path)() == environment


def test_where_there_is_no_cluster_and_where_there_is_no_kubectl_its_callers_learn_it_themselves(
    tmp_path: Path,
):
    (tmp_path / "kubectl").write_text("#!/bin/sh\necho no cluster >&2; exit 1\n")
    (tmp_path / "kubectl").chmod(0o755)
    for path in (tmp_path, tmp_path / "nowhere"):
        environment = {"PATH": str(path)}
        assert kubectl.login(environment, tmp_path)() == environment
    with pytest.raises(RuntimeError, match="no cluster"):
        kubectl.kubectl_with(lambda: {"PATH": f"{tmp_path}:{os.environ['PATH']}"})("get", "nodes")


def test_a_byte_that_is_no_text_ends_no_word(tmp_path: Path):
    """A rank that was killed within a character."""
    (tmp_path / "kubectl").write_text(
        "#!/bin/sh\nprintf 'step 1\\n\\342\\226'\nprintf '\\377 no' >&2; exit ${CODE:-0}\n"
    )
    (tmp_path / "kubectl").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert kubectl.kubectl_with(lambda: environment)("logs", "t5") == "step 1\n\ufffd"
    with pytest.raises(RuntimeError, match="^\ufffd no$"):
        kubectl.kubectl_with(lambda: environment | {"CODE": "1"})("logs", "t5")
