"""The real engine with the pack, on a program that asks for one Pod and needs no provider: whatever
configures the policies, `pulumi preview` refuses what `trainyard check --policies` refuses."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.providers import install
from tests.support.recording import CHECKOUT

pytestmark = pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built")
PROGRAM = """
import json

import pulumi

pulumi.ComponentResource(
    "kubernetes:core/v1:Pod", "pod", {"spec": {"containers": [{"image": "docker.io/x"}]}}
)
tags = {"tags": {"cost-center": "17", "trainyard:project": "trainyard", "trainyard:stack": "it"}}
given = {"region": "us-east-2", "defaultTags": json.dumps(tags)}
provider = pulumi.ProviderResource("aws", "by-default", given)
pulumi.CustomResource(
    "aws:ec2/vpc:Vpc", "vpc", {"cidrBlock": "10.0.0.0/16"}, pulumi.ResourceOptions(provider=provider)
)
"""
IMAGES = "images-from-allowed-registries"
BUDGET = "max_usd_per_hour"
ELSEWHERE = {"registries": ["quay.io/"]}
Preview = Callable[[Any], tuple[int, str]]


@pytest.fixture(scope="module")
def preview(tmp_path_factory: pytest.TempPathFactory) -> Preview:
    """`pulumi preview` by a configuration: its exit status, and what it prints."""
    folder = tmp_path_factory.mktemp("engine")
    (folder / "backend").mkdir()
    project = {
        "name": "trainyard",
        "runtime": {"name": "python", "options": {"virtualenv": str(CHECKOUT / ".venv")}},
    }
    (folder / "Pulumi.yaml").write_text(json.dumps(project))
    (folder / "__main__.py").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            install,
            "PLUGINS",
            {key: value for key, value in install.PLUGINS.items() if key[1] in ("python", "aws")},
        )
        install.install(folder / "home", paths.BIN)
    variables = {
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": f"file://{folder}/backend",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }

    def pulumi(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [paths.BIN / "pulumi", *words, "--non-interactive", "--stack", "it"],
            cwd=folder,
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    def run(configured: Any) -> tuple[int, str]:
        file = folder / "config.json"
        file.write_text(json.dumps(configured))
        pack = str(CHECKOUT / "policy_pack")
        return pulumi("preview", "--policy-pack", pack, "--policy-pack-config", str(file))

    status, text = pulumi("stack", "init")
    assert status == 0, text
    return run


def test_a_sound_configuration_is_asked_and_its_violations_stop_the_preview(
    preview: Preview,
) -> None:
    status, text = preview({IMAGES: ELSEWHERE})
    assert status != 0 and f"[mandatory]  {IMAGES}" in text, text
    assert "pod: must take its image from an allowed registry; got docker.io/x" in text


def test_tags_by_default_count_and_stop_no_preview(preview: Preview) -> None:
    status, text = preview({"tagged": {"required": ["cost-center"]}})
    assert status == 0 and "failed to run policy" not in text, text
    status, text = preview({"tagged": {"required": ["team"]}})
    assert status != 0 and "vpc: must have team among its tags" in text, text


OTHERS_OFF = dict.fromkeys(("within-budget", "own-key", "buckets-own-key"), "disabled")


@pytest.mark.parametrize(
    ("configured", "warns"),
    [
        ({IMAGES: {"enforcementLevel": "advisory", **ELSEWHERE}}, True),
        ({"all": "advisory", IMAGES: ELSEWHERE, **OTHERS_OFF}, True),
        ({IMAGES: {"enforcementLevel": "disabled", **ELSEWHERE}}, False),
        ({}, False),
    ],
    ids=["advisory", "all advisory", "disabled", "nothing configured"],
)
def test_a_policy_has_the_level_that_is_configured(
    configured: Any, warns: bool, preview: Preview
) -> None:
    status, text = preview(configured)
    assert status == 0, text
    assert (f"[advisory]  {IMAGES}" in text) == warns, text


WRONG = {
    "own-keys": "mandatory",
    "own-key": {"key": ["a"]},
    "within-budget": {"enforcementLevel": "advisory"},
    "encrypted": "remediate",
    "all": {"enforcementLevel": "mandatory", "keys": ["a"]},
    "buckets-own-key": "disabled",
}


def test_every_error_of_a_configuration_stops_the_preview_at_once(preview: Preview) -> None:
    status, text = preview(WRONG)
    assert status != 0 and "Traceback" not in text, text
    assert "7 errors in the configuration of the policies" in text
    for path, fix in (
        ("own-keys", "did you mean own-key?"),
        ("own-key.key", "did you mean keys?"),
        ("own-key.keys", 'write "own-key": {'),
        ("within-budget.max_usd_per_hour", 'write "within-budget": {'),
        ("encrypted.enforcementLevel", 'write "mandatory"'),
        ("all.keys", "delete it; the settings are enforcementLevel"),
        (f"{IMAGES}.registries", f'write "{IMAGES}": {{'),
    ):
        [line] = [
            line for line in text.splitlines() if line.startswith(f"  error    {path}: must ")
        ]
        assert f"Fix: {fix}" in line


@pytest.mark.parametrize(
    ("configured", "errors"),
    [
        ({"own-keys": {"keys": ["a"]}}, ["invalid enforcement level"]),
        (
            {"own-key": {"keys": [" "]}, "tagged": {"required": []}, "within-budget": {BUDGET: 0}},
            ["Does not match pattern", "at least 1 items", "Must be greater than 0"],
        ),
    ],
    ids=["settings of an unknown policy", "values"],
)
def test_what_the_engine_refuses_itself_stops_the_preview(
    configured: Any, errors: list[str], preview: Preview
) -> None:
    status, text = preview(configured)
    assert status != 0 and all(error in text for error in errors), text
