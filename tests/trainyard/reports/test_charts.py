"""What `trainyard check` says about the place that charts come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.stackfile import at, errors, reading, values
from tests.support.tool import run_word
from trainyard.catalog.versions import KARPENTER, NVIDIA_DEVICE_PLUGIN
from trainyard.reports.charts import chart_problems

SOUND = {
    "karpenter": KARPENTER,
    "karpenter-crd": KARPENTER,
    "nvidia-device-plugin": f"v{NVIDIA_DEVICE_PLUGIN}",
    "kubeflow-trainer-2.3.0": '"2.3.0"',
}


def folder(at: Path, **changed: str | None) -> Path:
    """A folder with every chart. `changed`: name → another version, or none."""
    for name, version in {**SOUND, **changed}.items():
        if version is not None:
            (at / name).mkdir(parents=True)
            (at / name / "Chart.yaml").write_text(f"name: {name}\nversion: {version}  # x\n")
    return at


def found(place: str | Path) -> list[str]:
    edits = [at("artifacts.charts", str(place)), at("trainer.version", "2.3.0")]
    config = reading(*edits).config
    assert config and config.environment
    return [str(error) for error in chart_problems(config.environment, "dev")]


def test_a_folder_with_every_chart_and_a_registry_have_no_error(tmp_path: Path) -> None:
    assert found(folder(tmp_path, karpenter=f"{KARPENTER}-ours")) == []
    assert found("oci://registry.example.com/charts") == []


def test_a_registry_of_ecr_is_a_warning_with_the_login() -> None:
    """Helm's 401 in a preview names no command."""
    host = "123456789012.dkr.ecr.us-west-2.amazonaws.com"
    [warning] = found(f"oci://{host}/charts")
    assert warning.startswith("environment.artifacts.charts: each preview and update reads charts")
    assert (
        "`aws ecr get-login-password --region us-west-2 | helm registry login --username AWS"
        f" --password-stdin {host}`"
    ) in warning


def test_a_folder_that_does_not_exist_is_refused_with_the_command_that_makes_it() -> None:
    assert found("/nowhere") == [
        "environment.artifacts.charts: must be a folder with every chart of the stack; got /nowhere,"
        " which is no folder. Fix: run trainyard mirror dev --charts, which writes them"
    ]


def test_charts_that_are_missing_or_of_another_version_are_named(tmp_path: Path) -> None:
    changed: dict[str, Any] = {"karpenter-crd": None, "karpenter": "1.14.10"}
    [error] = found(folder(tmp_path, **changed))
    faults = f"karpenter-crd is missing, karpenter has version 1.14.10, not {KARPENTER}. Fix: "
    assert f"got {tmp_path}: {faults}" in error


@pytest.mark.parametrize(
    "place", ["https://charts.example.com", "s3://charts/x", "oci://", "C:\\x"]
)
def test_what_is_neither_a_folder_nor_a_registry_is_refused(place: str) -> None:
    [error] = errors(at("artifacts.charts", place))
    assert "must be a folder, or oci:// and the beginning of charts in a registry" in error


def test_a_check_says_it_with_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    config = {"config": values(at("artifacts.charts", "charts"))}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert run_word("check", ["dev"]) == 1
    said = capsys.readouterr().out
    assert "environment.artifacts.charts [Pulumi.dev.yaml:" in said
    assert "which is no folder. Fix: run trainyard mirror dev --charts" in said
