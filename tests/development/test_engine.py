"""What drives the engine, with a stand-in for the pulumi program."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from development import engine
from development.engine import Stack
from rehearsal import environment, paths, processes
from rehearsal.aws.identity import DEVELOPER_KEY
from tests.development.conftest import ENVIRONMENT, TEAM, write_stack_file
from tests.support.patience import until
from tests.support.scalars import TEXTS, can_be_bare
from trainyard.catalog.scalars import EngineLoader


@pytest.fixture
def dev(checkout: Path) -> Stack:
    stack = engine.find("dev")
    engine.prepare(stack, _ignore)
    return stack


def _ignore(*_: object) -> None:
    """Nobody listens."""


def _up(stack: Stack, events: Callable[[list[Any]], None] = _ignore) -> int:
    return engine.update(stack, "up", events=events, notice=_ignore)


@contextmanager
def _at_work(stack: Stack) -> Iterator[int]:
    """Another engine that holds the stack's lock; killed in the end."""
    command = [paths.BIN / "pulumi", "up", "--event-log", paths.STATE / "e"]
    with subprocess.Popen(command, env=engine.complete(stack) | {"FAKE_SECONDS": "30"}) as process:
        until(lambda: engine._lock_owners(stack) == [process.pid])
        yield process.pid
        process.kill()


def test_a_stack_without_a_file_is_refused_with_those_that_have_one(checkout: Path):
    with pytest.raises(
        engine.EngineError, match=r"Pulumi.prod.yaml does not exist: the stacks are dev, team"
    ):
        engine.find("prod")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("config: {a: b: c}", "Pulumi.dev.yaml is not YAML: .*line 1"),
        ("", "wants a mapping `config`"),
        ("config: [a]", "wants a mapping `config`"),
        ("- config", "wants a mapping `config`"),
    ],
)
def test_what_is_no_stack_file_is_refused_in_a_line(
    checkout: Path, dev: Stack, text: str, says: str
):
    (checkout / "Pulumi.dev.yaml").write_text(text)
    for asks in (lambda: dev.settings, lambda: engine.refresh_copy(dev)):
        with pytest.raises(engine.EngineError, match=says):
            asks()


def test_settings_of_a_wrong_kind_reach_the_program_which_judges_them(checkout: Path, dev: Stack):
    (checkout / "Pulumi.dev.yaml").write_text("config: {'trainyard:environment': seoul}")
    engine.refresh_copy(dev)
    assert (
        dev.settings == {"trainyard:environment": "seoul"}
        and dev.section("trainyard:environment") == {}
    )
    (checkout / "Pulumi.team.yaml").write_text("config: {'trainyard:team': vision}")
    assert engine.find("team").refers_to is None


def test_the_copy_differs_from_the_tracked_file_by_where_charts_come_from(
    checkout: Path, dev: Stack
):
    assert dev.settings == ENVIRONMENT
    copied = yaml.safe_load(dev.copy.read_text())["config"]
    assert copied["trainyard:environment"].pop("artifacts") == {"charts": str(paths.CHARTS)}
    assert copied == ENVIRONMENT


@pytest.mark.parametrize("quotes", ["", "'", '"'])
def test_the_engine_reads_the_same_in_the_copy_as_in_the_tracked_file(
    checkout: Path, dev: Stack, quotes: str
):
    """Our copy took the quotes off "1e-3", and made true of on and another text of a time."""
    written = [text for text in TEXTS if can_be_bare(text) and text]
    items = "".join(f"\n        - {quotes}{text}{quotes}" for text in written)
    dev.tracked.write_text(
        "config:\n  aws:region: us-east-1\n  trainyard:environment:\n    merged: &one {a: 1e-3}\n"
        f"    here: {{<<: *one, 1e3: on, !!str 1e3: b}}\n    list:{items}\n    artifacts: {{images: x/y}}\n"
    )
    engine.refresh_copy(dev)
    tracked, copied = (
        yaml.load(f.read_text(), EngineLoader)["config"] for f in (dev.tracked, dev.copy)
    )
    added = {"images": "x/y", "charts": str(paths.CHARTS)}
    assert copied["trainyard:environment"].pop("artifacts") == added
    tracked["trainyard:environment"].pop("artifacts")
    assert len(written) > 80 and repr(copied) == repr(tracked)


def test_a_section_that_is_empty_reaches_the_program_which_refuses_it(checkout: Path, dev: Stack):
    dev.tracked.write_text("config: {'trainyard:environment': {zone: a, artifacts: }}\n")
    engine.refresh_copy(dev)
    assert yaml.safe_load(dev.copy.read_text())["config"] == {
        "trainyard:environment": {"zone": "a", "artifacts": None}
    }


def test_a_day_that_no_calendar_has_is_no_traceback(checkout: Path, dev: Stack):
    dev.tracked.write_text("config: {'trainyard:environment': {zone: 2026-02-30, tags: {a: =}}}\n")
    engine.refresh_copy(dev)
    assert dev.settings["trainyard:environment"]["zone"] == "2026-02-30"


def test_a_team_is_refused_while_its_environment_is_not_up(checkout: Path):
    with pytest.raises(
        engine.EngineError, match="team stands on dev, which is not up: `make up STACK=dev`"
    ):
        engine.prepare(engine.find("team"), _ignore)


def test_a_team_is_copied_as_it_is(dev: Stack):
    team = engine.find("team")
    engine.prepare(team, _ignore)
    assert yaml.safe_load(team.copy.read_text())["config"] == TEAM


def test_an_edited_stack_file_reaches_the_engine_and_the_salt_stays(checkout: Path, dev: Stack):
    write_stack_file(dev.tracked, ENVIRONMENT | {"aws:region": "us-west-2"})
    engine.prepare(dev, _ignore)
    copied = yaml.safe_load(dev.copy.read_text())
    assert copied["config"]["aws:region"] == "us-west-2"
    assert copied["encryptionsalt"] == "v1:salt"


def test_no_tracked_file_is_written(checkout: Path, monkeypatch: pytest.MonkeyPatch):
    before = {file.name: file.read_bytes() for file in checkout.iterdir()}
    stack = engine.find("dev")
    engine.prepare(stack, _ignore)
    _up(stack)
    assert {file.name: file.read_bytes() for file in checkout.iterdir()} == before


def test_the_passphrase_is_for_our_eyes_only(dev: Stack):
    file = Path(engine.variables(dev)["PULUMI_CONFIG_PASSPHRASE_FILE"])
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text()) == 32


def test_the_engine_gets_its_region_and_nobody_elses_identity(
    dev: Stack, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AWS_PROFILE", "production")
    told = engine.complete(dev)
    assert told["AWS_REGION"] == "eu-north-1"
    assert told["AWS_ENDPOINT_URL"] == "http://127.0.0.1:2"
    assert "AWS_PROFILE" not in told


def test_the_profile_of_the_stack_file_is_the_developer(checkout: Path, dev: Stack):
    """Not one of whoever rehearses, whose keys open an account."""
    write_stack_file(dev.tracked, ENVIRONMENT | {"aws:profile": "corp"})
    engine.prepare(dev, _ignore)
    command = [sys.executable, "-c", "import botocore.session as s; k = s.Session(profile='corp')"]
    command[-1] += ".get_credentials(); print(k.access_key)"
    told = engine.complete(dev) | {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    said = subprocess.run(command, env=told, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == DEVELOPER_KEY
    plugin = yaml.safe_load(engine.write_kubeconfig(dev).read_text())["users"][0]["user"]["exec"]
    file = {"name": "AWS_CONFIG_FILE", "value": told["AWS_CONFIG_FILE"]}
    assert file in plugin["env"], "kubectl asks with that profile too"


def test_events_arrive_once_and_in_order(dev: Stack):
    seen: list[Any] = []
    assert _up(dev, seen.extend) == 0
    assert [kind for event in seen for kind in event] == ["resourcePreEvent", "resOutputsEvent"]


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_interrupt_lets_the_engine_finish(dev: Stack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAKE_SECONDS", "30")
    seen: list[Any] = []

    def interrupt_once(events: list[Any]) -> None:
        if events and not seen:
            _interrupt()
        seen.extend(events)

    with pytest.raises(KeyboardInterrupt):
        _up(dev, interrupt_once)
    assert len(seen) == 2
    assert not engine._lock_owners(dev)


def test_the_second_interrupt_kills_the_engine_and_the_next_run_works(
    dev: Stack, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SECONDS", "30")
    monkeypatch.setenv("FAKE_STUBBORN", "yes")
    said: list[str] = []

    def interrupt_again(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            _interrupt()

    with pytest.raises(KeyboardInterrupt):
        engine.update(
            dev,
            "up",
            events=lambda events: _interrupt() if events else None,
            notice=interrupt_again,
        )
    assert said[-1] == "killing the engine"
    monkeypatch.setenv("FAKE_SECONDS", "0")
    engine.prepare(dev, _ignore)
    assert _up(dev) == 0


def test_the_lock_of_a_killed_engine_is_taken_away(dev: Stack):
    with _at_work(dev) as pid:
        os.kill(pid, signal.SIGKILL)
    said: list[str] = []
    engine.prepare(dev, said.append)
    assert said == [
        f"the lock of stack dev was taken away: the engine that had left it was killed (process {pid})"
    ]
    assert _up(dev) == 0


def test_the_lock_of_a_living_engine_is_respected(dev: Stack, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "LOCK_SECONDS", 0.2)
    with (
        _at_work(dev) as pid,
        pytest.raises(engine.EngineError, match=f"process {pid} still works on stack dev"),
    ):
        engine.prepare(dev, _ignore)


def test_an_engine_whose_driver_was_killed_cancels_itself(
    dev: Stack, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAKE_SECONDS", "30")
    driver = os.fork()
    if not driver:
        _up(dev)
        os._exit(0)
    until(lambda: bool(engine._lock_owners(dev)))
    os.kill(driver, signal.SIGKILL)
    os.waitpid(driver, 0)
    assert until(lambda: not engine._lock_owners(dev))


def test_a_plugin_that_outlived_its_engine_is_ended(dev: Stack):
    program = paths.BIN / "pulumi"
    program.write_text(program.read_text().replace("exec", "sleep 1000 >/dev/null 2>&1 & exec"))
    assert _up(dev) == 0
    session, marker = (
        int((paths.STATE / "engine").read_text()),
        f"TRAINYARD_REHEARSAL={paths.STATE}",
    )
    assert until(lambda: processes.in_session(session, marker) == [])


def test_teams_are_destroyed_before_the_environment_they_refer_to(checkout: Path, dev: Stack):
    engine.prepare(engine.find("team"), _ignore)
    assert [stack.name for stack in engine.stacks()] == ["team", "dev"]


def test_a_second_environment_learns_whose_the_only_cluster_is(checkout: Path, dev: Stack):
    write_stack_file(checkout / "Pulumi.lab.yaml", ENVIRONMENT)
    lab, team = engine.find("lab"), engine.find("team")
    for stack in (lab, team):
        engine.prepare(stack, _ignore)
    assert engine.with_the_cluster(lab) is None
    state = paths.BACKEND / ".pulumi/stacks/trainyard/dev.json"
    state.write_text(json.dumps([{"urn": "u", "type": engine.CLUSTER}]))
    assert engine.with_the_cluster(lab) == dev
    assert engine.with_the_cluster(team) is engine.with_the_cluster(dev) is None
    write_stack_file(lab.tracked, {"trainyard:environment": {"cluster": "mine"}})
    assert engine.with_the_cluster(lab) == dev, "the program judges it"
    write_stack_file(lab.tracked, {"trainyard:environment": {"cluster": {"name": "theirs"}}})
    assert engine.with_the_cluster(lab) is None


def test_the_kubeconfig_works_by_itself_and_holds_no_token(dev: Stack):
    file = engine.write_kubeconfig(dev)
    plugin = yaml.safe_load(file.read_text())["users"][0]["user"]["exec"]
    assert Path(plugin["command"]).is_absolute()
    assert {"name": "AWS_ENDPOINT_URL", "value": "http://127.0.0.1:2"} in plugin["env"]
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_kubeconfig_is_there_while_the_first_update_runs(
    dev: Stack, monkeypatch: pytest.MonkeyPatch
):
    """`trainyard kubeconfig` said that the stack had no cluster, beside the update that filled it."""
    whole = engine.outputs(dev)["kubeconfig"]
    provider = {
        "type": "pulumi:providers:kubernetes",
        "urn": "urn:cluster",
        "inputs": {"kubeconfig": whole},
    }
    monkeypatch.setattr(engine, "outputs", lambda _: {})
    monkeypatch.setattr(engine, "_deployment", lambda _: {"resources": [provider]})
    assert "users" in yaml.safe_load(engine.write_kubeconfig(dev).read_text())
    monkeypatch.setattr(engine, "_deployment", lambda _: {"resources": []})
    with pytest.raises(engine.EngineError, match="has no cluster yet"):
        engine.write_kubeconfig(dev)


def test_each_stack_has_a_kubeconfig_of_its_own(dev: Stack):
    """A word about a team overwrote the kubeconfig that the shell of the environment reads."""
    team = engine.find("team")
    assert dev.kubeconfig != team.kubeconfig
    for stack in (dev, team):
        assert engine.variables(stack)["KUBECONFIG"] == str(stack.kubeconfig)
    before = engine.write_kubeconfig(dev).read_text()
    engine.prepare(team, _ignore)
    assert engine.write_kubeconfig(team) == team.kubeconfig
    assert dev.kubeconfig.read_text() == before


def test_the_pulumi_for_people_runs_from_folders_with_blanks(
    dev: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, python = tmp_path / "my programs", tmp_path / "my environment"
    copied = 'echo "the copy"'
    shows = 'echo "$PULUMI_OPTION_CONFIG_FILE: $@"'
    for folder, name, text in ((programs, "pulumi", shows), (python, "python", copied)):
        folder.mkdir()
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setattr(paths, "BIN", programs)
    monkeypatch.setattr(environment, "VENV", python)
    ours = engine.own_pulumi() / "pulumi"
    assert subprocess.check_output([ours, "stack", "ls"], text=True) == "the copy: stack ls\n"


@pytest.mark.parametrize(
    ("words", "stack"),
    [
        (("up", "--yes"), "dev"),
        (("up", "--stack", "team", "--yes"), "team"),
        (("preview", "-s", "team"), "team"),
        (("up", "--stack=organization/trainyard/team"), "team"),
        (("stack", "init", "--stack", "of-nobody"), "of-nobody"),
    ],
)
def test_a_pulumi_for_people_reads_the_file_of_the_stack_that_it_names(
    words: tuple[str, ...], stack: str, checkout: Path, dev: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the shell of dev a team's stack was planned with dev's file: a second VPC."""
    monkeypatch.setenv("PULUMI_STACK", "dev")
    copy = engine.fresh_copy(words)
    assert copy == Stack(name=stack).copy
    assert copy.exists() is (checkout / f"Pulumi.{stack}.yaml").exists()


def test_a_switch_of_the_kubernetes_plugin_reaches_the_engine_and_an_identity_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`make up` named PULUMI_K8S_ENABLE_PATCH_FORCE=true, and left it out."""
    monkeypatch.setenv("PULUMI_K8S_ENABLE_PATCH_FORCE", "true")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "somebody's")
    monkeypatch.setattr(engine, "variables", lambda _: {"PULUMI_STACK": "dev"})
    told = engine.complete(engine.Stack(name="dev"))
    assert told["PULUMI_STACK"] == "dev" and told["PULUMI_K8S_ENABLE_PATCH_FORCE"] == "true"
    assert "PULUMI_ACCESS_TOKEN" not in told
