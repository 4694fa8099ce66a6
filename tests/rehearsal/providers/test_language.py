"""The language host and where the plugins are put; with the real engine where it was built."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import grpc
import pytest
from pulumi.runtime.proto import language_pb2

from rehearsal import environment as told
from rehearsal import paths
from rehearsal.providers import install, language
from rehearsal.providers.wire import struct
from rehearsal.toolchain import genuine
from tests.support.patience import PATIENCE

PULUMI = paths.BIN / "pulumi"


def info(root: Path, **options: Any) -> Any:
    return language_pb2.ProgramInfo(
        root_directory=str(root), program_directory=str(root), options=struct(options)
    )


def environment_of(root: Path, name: str) -> Path:
    python = root / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


def test_the_virtualenv_of_pulumi_yaml_runs_the_program(tmp_path: Path) -> None:
    python = environment_of(tmp_path, "venv")
    program, environment = language.interpreter(info(tmp_path, virtualenv="venv"))
    assert program == str(python)
    assert environment["VIRTUAL_ENV"] == str(tmp_path / "venv")
    assert environment["PATH"].startswith(str(python.parent))


def test_a_missing_virtualenv_is_named(tmp_path: Path) -> None:
    request = language_pb2.RunRequest(info=info(tmp_path, virtualenv="nowhere"))
    answer = language.Host("", tmp_path).Run(request, MagicMock())
    assert str(tmp_path / "nowhere") in answer.error
    with pytest.raises(FileNotFoundError, match="runtime.options.virtualenv"):
        language.interpreter(info(tmp_path, toolchain="uv"))


def test_an_environment_is_made_and_filled_and_what_pip_refuses_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("no such requirement\n")
    asked = language_pb2.InstallDependenciesRequest(info=info(tmp_path, virtualenv="venv"))
    context = MagicMock()
    answers = [*language.Host("", tmp_path).InstallDependencies(asked, context)]
    assert (tmp_path / "venv" / "bin" / "pip").exists()
    assert b"no such requirement" in b"".join(each.stderr for each in answers)
    [code, text] = context.abort.call_args.args
    assert code == grpc.StatusCode.UNKNOWN and text.endswith("ended with 1")


def test_the_packages_of_the_programs_own_environment_say_which_plugins_it_needs() -> None:
    venv = info(
        Path(sys.executable).parent.parent.parent,
        virtualenv=Path(sys.executable).parent.parent.name,
    )
    request = language_pb2.GetRequiredPackagesRequest(info=venv)
    packages = language.Host("", Path()).GetRequiredPackages(request, MagicMock()).packages
    wanted = {
        name: f"v{metadata.version(f'pulumi-{name}')}" for name in ("aws", "eks", "kubernetes")
    }
    assert {package.name: package.version for package in packages} == wanted


def test_a_program_is_told_the_organization_that_the_engine_names(tmp_path: Path) -> None:
    request = language_pb2.RunRequest(info=info(tmp_path), organization="acme", stack="dev")
    arguments = language.Host("", tmp_path)._arguments(request)
    assert arguments[arguments.index("--organization") + 1] == "acme"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PULUMI_HOME with the plugins in it, their upstream part made of the cache or of nothing."""
    for name in genuine.RELEASED:
        monkeypatch.setenv(f"{name.upper()}_PROVIDER", "own")
    if not install.language_exec().exists():
        upstream = tmp_path / "upstream"
        upstream.write_text("")
        monkeypatch.setattr(install, "language_exec", lambda: upstream)
    install.install(tmp_path / "home", paths.BIN)
    return tmp_path / "home"


def test_every_plugin_lies_under_the_version_of_its_sdk(home: Path) -> None:
    files = [file for file in home.glob("plugins/*/pulumi-*") if os.access(file, os.X_OK)]
    found = {str(file.relative_to(home / "plugins")) for file in files}
    resources = {
        f"resource-{name}-v{metadata.version(f'pulumi-{name}')}/pulumi-resource-{name}"
        for name in ("aws", "eks", "kubernetes")
    }
    assert found == resources | {
        f"language-python-v{metadata.version('pulumi')}/pulumi-language-python"
    }


def test_plugins_are_put_over_older_ones(home: Path) -> None:
    install.install(home, Path("/elsewhere"))
    plugin = next(home.glob("plugins/resource-aws-*/pulumi-resource-aws"))
    assert "PATH=/elsewhere:" in plugin.read_text()


@pytest.mark.parametrize("name", ["aws", "eks", "kubernetes"])
def test_an_installed_plugin_starts_anywhere_says_its_port_and_leaves_quietly(
    name: str, home: Path, tmp_path: Path
) -> None:
    program = next(home.glob(f"plugins/resource-{name}-*/pulumi-resource-{name}"))
    plugin = subprocess.Popen(
        [program, "127.0.0.1:1"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert plugin.stdout
    assert int(plugin.stdout.readline()) > 0
    plugin.send_signal(2)
    assert plugin.communicate(timeout=PATIENCE) == (b"", b"")


@pytest.mark.parametrize("name", genuine.RELEASED)
def test_a_genuine_plugin_is_used_in_place_of_ours(
    name: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = metadata.version(f"pulumi-{name}")
    theirs = tmp_path / f"theirs/plugins/resource-{name}-v{version}/pulumi-resource-{name}"
    theirs.parent.mkdir(parents=True)
    theirs.touch()
    monkeypatch.setenv(f"{name.upper()}_PROVIDER", "")
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "theirs"))
    install.install(home, paths.BIN)
    ours = next(home.glob(f"plugins/resource-{name}-*/pulumi-resource-{name}"))
    assert f"exec {theirs}" in ours.read_text()


@pytest.mark.parametrize("name", genuine.RELEASED)
def test_our_own_plugin_is_not_taken_for_the_genuine_one(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{name.upper()}_PROVIDER", "")
    monkeypatch.setenv("PULUMI_HOME", str(home))
    install.install(home, paths.BIN)
    ours = next(home.glob(f"plugins/resource-{name}-*/pulumi-resource-{name}"))
    assert f"exec {ours}" not in ours.read_text()


@pytest.mark.world
@pytest.mark.skipif(not PULUMI.exists(), reason="no pulumi: the toolchain was never built here")
def test_the_real_engine_runs_a_program_through_the_host(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BACKEND", tmp_path / "backend")
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "backend").mkdir()
    venv = Path(sys.executable).parent.parent
    (project / "Pulumi.yaml").write_text(
        f"name: p\nruntime: {{name: python, options: {{virtualenv: {venv}}}}}\n"
    )
    (project / "__main__.py").write_text(
        "import pulumi\npulumi.export('said', pulumi.Config().require('word'))\n"
        "pulumi.export('organization', pulumi.get_organization())\n"
        "if pulumi.Config().get('fail'): raise pulumi.RunError('no, thanks')\n"
    )
    environment = {
        **os.environ,
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": told.backend_url(),
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }

    def pulumi(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(PULUMI), *arguments, "--non-interactive"]
        return subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )

    assert pulumi("stack", "init", "dev").returncode == 0
    assert pulumi("up", "-s", "dev", "--yes", "--skip-preview", "-c", "word=hello").returncode == 0
    assert json.loads(pulumi("stack", "output", "-s", "dev", "--json").stdout) == {
        "said": "hello",
        "organization": "organization",
    }
    failed = pulumi("preview", "-s", "dev", "-c", "fail=yes")
    assert failed.returncode != 0
    assert "no, thanks" in failed.stdout + failed.stderr
    assert list((tmp_path / "backend").rglob("dev.json")) and not list(
        (tmp_path / "backend").rglob("*.attrs")
    )
