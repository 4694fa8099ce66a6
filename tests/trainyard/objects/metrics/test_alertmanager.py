"""Alertmanager's own amtool reads the configuration, and says where an alert goes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rehearsal import paths
from trainyard.objects.metrics.alertmanager import AlertmanagerPlan, alertmanager_config
from trainyard.plans.topic import TopicPlan

AMTOOL = paths.BIN / "amtool"
pytestmark = pytest.mark.skipif(
    not AMTOOL.exists(), reason="needs amtool: `python -m rehearsal build --also amtool` builds it"
)
TOPIC = "arn:aws:sns:us-east-1:123456789012:alerts"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    plan = AlertmanagerPlan(
        image="alertmanager",
        role_name="alertmanager",
        region="us-east-1",
        topic=TopicPlan(name="alerts", arn=TOPIC, emails=()),
        severities=("critical", "warning"),
    )
    path = tmp_path / "alertmanager.json"
    path.write_text(alertmanager_config(plan, TOPIC))
    return path


def amtool(*words: str | Path) -> str:
    done = subprocess.run([AMTOOL, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def test_alertmanager_reads_its_configuration(file: Path) -> None:
    assert "SUCCESS" in amtool("check-config", file)


@pytest.mark.parametrize(
    ("severity", "receiver"), [("critical", "topic"), ("warning", "topic"), ("info", "nobody")]
)
def test_alerts_go_where_their_severity_says(file: Path, severity: str, receiver: str) -> None:
    routed = amtool("config", "routes", "test", f"--config.file={file}", f"severity={severity}")
    assert routed.strip() == receiver
