"""`trainyard check` reads a stack file itself, `pulumi up` is handed values by the engine: both say the same
of every scalar, and following what they say ends it."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from stacks.engine import read_engine
from tests.support.recording import NoLookups
from tests.support.scalars import can_be_bare, handed_over, texts
from trainyard.settings.reading.reader import read_file

FILE = """\
config:
  aws:region: ap-northeast-2
  aws:allowedAccountIds: [{account}]
  trainyard:environment:
    zone: ap-northeast-2a
    zone_id: {zone_id}
    cluster: {{version: "1.34", public_access_cidrs: [192.0.2.7/32]}}
    production: {production}
    pools:
      g6e: {{instance_types: [g6e.48xlarge], max_nodes: {max_nodes}, prefetch: {prefetch}}}
      block:
        instance_types: [p5.48xlarge]
        max_nodes: 2
        capacity: block
        reservation: {{id: cr-0123456789abcdef0, instances: 2, starts: {starts}, ends: {ends}}}
    trainer: {{version: 2.1.0, runtimes: [torch-distributed]}}
    tags: {{{key}: x, team: {tag}}}
    metrics: {{dollars_a_day: {dollars}}}
    jobs:
      mine:
        runtime: torch-distributed
        pool: g6e
        image: image:1
        nodes: 1
        torchrun: {{script: a.py, arguments: [--lr, {argument}]}}
        env: {{RATE: {variable}}}
        allow_no_checkpoint: true
"""
SOUND = {
    "account": '"111122223333"',
    "zone_id": "apne2-az1",
    "production": "false",
    "max_nodes": "4",
    "prefetch": "[]",
    "starts": "2027-01-04T11:30:00Z",
    "ends": '"2027-01-06T11:30:00Z"',
    "key": "purpose",
    "tag": "vision",
    "dollars": "5",
    "argument": '"1"',
    "variable": '"2"',
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "Pulumi.yaml").write_text("name: trainyard\n")
    pulumi.runtime.set_mocks(NoLookups(), project="trainyard", stack="x")
    return folder


def said(folder: Path, monkeypatch: pytest.MonkeyPatch, **values: str) -> list[str]:
    """What `trainyard check` says of the file, which is what the program says of the engine's values."""
    text = FILE.format(**{**SOUND, **values})
    (folder / "Pulumi.x.yaml").write_text(text)
    monkeypatch.chdir(folder)
    pulumi.runtime.set_all_config(handed_over(text))
    by_check, by_program = read_file("x", folder), read_engine()
    found = [str(by_check.lines.locate(error)) for error in by_check.errors]
    assert found == [str(by_program.lines.locate(error)) for error in by_program.errors]
    assert found or by_check.config == by_program.config
    return found


STEADY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@STEADY
@given(st.sampled_from([*SOUND]), texts().filter(can_be_bare))
@example("argument", "1e-3")
@example("account", "012345678901")
@example("starts", "2027-01-04T11:30:00Z")
@example("starts", "2027-01-04 11:30:00")
@example("tag", ".nan")
@example("key", "1e-3")
@example("max_nodes", "4.0")
@example("dollars", "1e1")
@example("prefetch", "2026-13-01T00:00:00Z")
def test_check_and_up_say_the_same_of_a_scalar_without_quotes(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str
) -> None:
    assume(text or place != "key")
    said(project, monkeypatch, **{place: text})


@STEADY
@given(st.sampled_from([*SOUND]), texts())
@example("tag", "2027-01-04 11:30:00 +0000 UTC")
@example("starts", "2027-01-04 11:30:00 +0000 UTC")
def test_check_and_up_say_the_same_of_a_text_in_quotes(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str
) -> None:
    said(project, monkeypatch, **{place: "'" + text.replace("'", "''") + "'"})


@STEADY
@given(st.sampled_from(["tag", "argument", "variable"]), texts().filter(can_be_bare))
@example("argument", "1e-3")
@example("variable", "2026-01-02")
@example("argument", "null")
def test_what_is_no_text_is_one_error_with_the_text_in_quotes_which_ends_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str
) -> None:
    found = said(project, monkeypatch, **{place: text})
    if not found or not text:
        return
    [error] = found
    line = FILE.partition(f"{{{place}}}")[0].count("\n") + 1
    assert error.endswith(f'[Pulumi.x.yaml:{line}]: must be text; got {text}. Fix: write "{text}"')
    assert said(project, monkeypatch, **{place: f'"{text}"'}) == []


@pytest.mark.parametrize(
    ("place", "text", "says"),
    [
        ("argument", "1e-3", "environment.jobs.mine.torchrun.arguments.1"),
        ("variable", "0o17", "environment.jobs.mine.env.RATE"),
        ("tag", "2026-01-02", "environment.tags.team"),
        ("account", "012345678901", "aws:allowedAccountIds.0"),
    ],
)
def test_a_scalar_that_readers_take_differently_is_refused_with_what_to_write(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str, says: str
) -> None:
    [error] = said(project, monkeypatch, **{place: text})
    line = FILE.partition(f"{{{place}}}")[0].count("\n") + 1
    where = f"{says} [Pulumi.x.yaml:{line}]"
    assert error == f'{where}: must be text; got {text}. Fix: write "{text}"'
    assert said(project, monkeypatch, **{place: f'"{text}"'}) == []


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("max_nodes", "4.0"),
        ("max_nodes", "1e1"),
        ("max_nodes", "0o17"),
        ("dollars", "1e-3"),
        ("starts", "2027-01-04T11:30:00Z"),
        ("starts", "2027-01-04T20:30:00+09:00"),
        ("argument", "60:30"),
        ("variable", "on"),
        ("tag", "="),
    ],
)
def test_what_the_engine_reads_as_it_is_wanted_is_accepted(
    project: Path, monkeypatch: pytest.MonkeyPatch, place: str, text: str
) -> None:
    assert said(project, monkeypatch, **{place: text}) == []


def test_a_name_that_the_engine_changes_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [error] = said(project, monkeypatch, key="1.10")
    assert error == (
        "environment.tags.1.10 [Pulumi.x.yaml:17]: must be text; got 1.10, which Pulumi reads as"
        ' 1.1. Fix: write "1.10"'
    )
