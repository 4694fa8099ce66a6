"""The commands that `make` calls, with stand-ins for account, fleet and pulumi."""

import argparse
import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from development import __main__ as cli
from development import down, engine, look, steps, up
from development.progress import Display, Stages
from rehearsal import __main__ as of_a_world
from rehearsal import paths, world
from rehearsal.__main__ import alone
from rehearsal.commands import words
from rehearsal.kube import ApiError
from rehearsal.processes import Process
from rehearsal.terminal import FAILED, REFUSED
from rehearsal.toolchain.programs import BY_NAME
from tests.support.worlds import NEEDS_A_WORLD
from trainyard.operations.recovery import kept as keeping
from trainyard.rules import principals
from trainyard.rules.principals import Principal, principal_errors

REPOSITORY = Path(__file__).parents[2]


REFUSALS = steps.refusals


@pytest.fixture
def machine(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nothing runs; everything that would be built is there; every job is Complete."""
    (paths.STATE / "world.json").unlink()
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setattr(
        world, "PARTS", ("tests.development.fake_account", "tests.development.fake_fleet")
    )
    monkeypatch.setattr(words.toolchain, "ensure", lambda **_: None)
    monkeypatch.setattr(words.charts, "ensure", lambda *_: None)
    monkeypatch.setattr(up, "_finish", lambda *_, **__: 0)
    yield checkout
    world.stop()


def _inventory(monkeypatch: pytest.MonkeyPatch, *things: dict[str, Any]) -> None:
    ask = world.ask
    monkeypatch.setattr(
        world,
        "ask",
        lambda method, path, body=None: (
            list(things) if path == "inventory" else ask(method, path, body)
        ),
    )


@NEEDS_A_WORLD
def test_up_makes_the_stack_and_down_leaves_nothing(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["up"]) == 0
    assert len(engine.resources(engine.find("dev"))) == 1
    assert cli.main(["down"]) == 0
    assert "account empty, everything stopped" in capsys.readouterr().out
    assert world.list_processes() == []
    assert sorted(os.listdir(paths.STATE)) == ["lock", "logs"]


@NEEDS_A_WORLD
@pytest.mark.parametrize(("interrupted", "made"), [(True, 0), (False, 1)])
def test_up_stops_where_a_killed_update_could_not_be_repaired(
    machine: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool, made: int
):
    monkeypatch.setattr(up, "repair", lambda *_: 1)
    monkeypatch.setattr(engine, "interrupted", lambda _: interrupted)
    assert cli.main(["up"]) == (1 if interrupted else 0)
    assert len(engine.resources(engine.find("dev"))) == made


def test_a_preview_starts_nothing_where_a_policy_is_misspelt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    started: list[Any] = []
    monkeypatch.setattr(look, "open_world", lambda *_, **__: started.append(1))
    monkeypatch.setattr(look, "CONFIG", tmp_path / "config.json")
    look.CONFIG.write_text('{"own-keys": "mandatory"}')
    assert look.preview(argparse.Namespace(stack="dev")) != 0 and not started
    said = capfd.readouterr().out
    assert f"own-keys [{look.CONFIG}:1]: must be the name of a policy" in said
    assert said.endswith(f"{look.CONFIG}: 1 error\n")


def test_a_preview_builds_no_cluster_and_says_what_up_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A metrics section was half an hour of compiling in a word that only looks."""
    built: list[str] = []
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    monkeypatch.setattr(look, "open_world", lambda *_, **how: bool(built.extend(how["programs"])))
    assert look.preview(argparse.Namespace(stack="dev")) == REFUSED
    assert set(built) == {"pulumi", "kubectl", "helm"}
    monkeypatch.setattr(look, "open_world", lambda *_, **__: True)
    monkeypatch.setattr(look.world, "running", lambda: True)
    monkeypatch.setattr(engine, "prepare", lambda *_, **__: None)
    monkeypatch.setattr(engine, "resources", lambda _: [])
    monkeypatch.setattr(look, "_run", lambda *_: 0)
    assert look.preview(argparse.Namespace(stack="dev")) == 0
    said = capfd.readouterr().out
    assert "`make up` builds first, once from pinned sources: etcd, pulumi, " in said
    assert re.search(r"karpenter.*; about \d+ minutes on two cores\n$", said)


PREVIEWED = argparse.Namespace(stack="dev")
ROLE = Principal(
    path="environment.teams.vision.role_arn", arn="arn:aws:iam::123456789012:role/vision"
)
NO_ROLE = str(next(principal_errors(ROLE, None)))
"""What the program says of a role that is missing."""


def _event(severity: str, message: str) -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": severity, "message": message}}


@pytest.fixture
def previewed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Events of a preview that succeeds and prints thousands of lines."""
    events: list[dict[str, Any]] = []

    def run(options: argparse.Namespace, *command: str) -> int:
        log = Path(command[command.index("--event-log") + 1])
        log.write_text("".join(f"{json.dumps(event)}\n" for event in events))
        print(" ".join(command))
        print("    + aws:ec2/vpc:Vpc: (create)\n" * 2_000)
        return 0

    monkeypatch.setattr(look, "open_world", lambda *_, **__: True)
    monkeypatch.setattr(look, "_run", run)
    monkeypatch.setattr(look, "needs", lambda _: 0)
    monkeypatch.setattr(look.engine, "resources", lambda _: [])
    monkeypatch.setattr(look.world, "running", lambda: True)
    monkeypatch.setattr(look.world, "stop", lambda: (paths.STATE / "preview").unlink())
    monkeypatch.setattr(look.words, "things", list)
    monkeypatch.setattr(look.subprocess, "call", lambda *_, **__: 0)  # judges the policies' names
    return events


def test_a_preview_ends_with_its_changes_where_the_stack_is_there(
    previewed: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two numbers that grow were 400 lines of differences and outputs."""
    urn = "urn:pulumi:dev::trainyard::aws:eks/cluster:Cluster::cluster-eksCluster"
    step = {"op": "delete", "urn": urn, "old": {}, "new": None}
    previewed += [{"resourcePreEvent": {"metadata": step}}]
    previewed += [{"summaryEvent": {"resourceChanges": {"delete": 1, "same": 7}}}]
    assert look.preview(PREVIEWED) == 0
    assert "deletes" not in (said := capsys.readouterr().out), "all of a new stack is new"
    assert "\nfigures\n" in said
    assert "--diff" not in said and "--suppress-outputs" in said
    monkeypatch.setattr(look.engine, "resources", lambda _: [{"type": "pulumi:pulumi:Stack"}])
    assert look.preview(PREVIEWED) == 0
    said = capsys.readouterr().out
    assert "\nchanges\n  Compared with what is deployed: 1 to delete, 7 unchanged.\n" in said
    assert "  deletes `Cluster cluster-eksCluster`\n" in said


def test_a_preview_ends_with_its_warnings_and_the_commands_that_make_missing_roles(
    previewed: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """They stood above 3,900 lines."""
    assert look.preview(PREVIEWED) == 0
    assert "warning" not in capsys.readouterr().out
    previewed += [_event("warning", "zone_id: it is not set"), _event("warning", NO_ROLE)]
    previewed += [_event("warning", NO_ROLE), _event("debug", "registering")]
    assert look.preview(PREVIEWED) == 0
    *_, warnings, following = capsys.readouterr().out.split("\n\n")
    assert warnings.strip().splitlines() == [
        "2 warnings",
        "  zone_id: it is not set",
        f"  {NO_ROLE.partition('. Fix: ')[0]}",
    ]
    commands = [line.rpartition("  # ")[0].strip() for line in following.splitlines()]
    made = principals.creation(ROLE)
    assert commands == ["", 'eval "$(make env)"', made, "make up"]
    assert following.startswith("next\n")


def test_what_somebody_makes_in_the_world_of_a_preview_is_said_to_go_with_it(
    previewed: list[dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(look.world, "running", lambda: False)
    made = {"type": "iam-role", "id": "vision", "name": "vision", "state": "available"}
    prepared: list[int] = []

    def prepare(*_: Any, **__: Any) -> None:
        """While the preview is at work somebody types `make env` beside it."""
        prepared.append(look.env(PREVIEWED))

    monkeypatch.setattr(engine, "prepare", prepare)
    monkeypatch.setattr(look.words, "things", lambda: [made])
    assert look.preview(PREVIEWED) == 0 and prepared == [0]
    said = capsys.readouterr()
    assert (
        "world         runs for this preview alone: what you make in it, such as roles, ends"
        in said.out
    )
    assert "made in this world, and gone with it" in said.out and "iam-role  vision" in said.out
    stays = look.STAYS[0]
    assert said.out.index(f"  {stays}  # start a world that stays") > said.out.index("iam-role")
    assert "this world ends with `make preview`" in said.err and f"`{stays}` starts one" in said.err
    assert not (paths.STATE / "preview").exists()
    look.env(PREVIEWED)
    assert "this world ends" not in capsys.readouterr().err


@pytest.mark.parametrize("word", ["up", "preview"])
def test_a_stack_file_with_errors_starts_and_builds_nothing(
    word: str, machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(steps, "refusals", REFUSALS)
    monkeypatch.setattr(steps.world, "obstacle", lambda: None)
    monkeypatch.setattr(steps.world, "start", lambda **_: pytest.fail("it starts a world"))
    monkeypatch.setattr(steps, "build_programs", lambda *_: pytest.fail("it builds"))
    monkeypatch.setattr(look.subprocess, "call", lambda *_, **__: 0)
    assert cli.main([word]) == 2
    said = capsys.readouterr().out
    assert "environment.pools [Pulumi.dev.yaml:3]: must be set; got nothing" in said


def test_the_lock_can_be_given_back_before_the_end_of_a_word(checkout: Path) -> None:
    """A team could not send a job while `make up` waited for the end of another team's."""
    with alone() as lock:
        with pytest.raises(world.WorldError, match="another `up`"), alone():
            pass
        fcntl.flock(lock, fcntl.LOCK_UN)
        with alone():
            pass


@NEEDS_A_WORLD
def test_up_does_not_go_on_in_the_world_of_a_preview_that_was_killed(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That world has an account and no cluster, so that no node would ever join."""
    dev = engine.find("dev")
    parts = ("tests.development.fake_account",)
    assert steps.open_world(dev, Display(), programs=(), parts=parts)
    before = paths.world()
    steps.of_a_preview().touch()
    assert cli.main(["up"]) == 0
    assert "clears away that of a preview which was killed" in capsys.readouterr().out
    assert paths.world() != before and not steps.of_a_preview().exists()
    cli.main(["up"])
    assert "clears away" not in capsys.readouterr().out


def test_env_says_that_the_kubeconfig_is_not_there_yet_or_writes_it(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = engine.find("team")
    with monkeypatch.context() as no_cluster:
        no_cluster.setattr(engine, "outputs", lambda _: {})
        no_cluster.setattr(engine, "_deployment", lambda _: {"resources": []})
        assert cli.main(["env", "--stack", "team"]) == 0
    said = capsys.readouterr()
    assert f"export KUBECONFIG={stack.kubeconfig}\n" in said.out
    assert said.err == (
        f"KUBECONFIG names {stack.kubeconfig}, which is not there before the stack has a cluster; then"
        " `trainyard kubeconfig --stack team` or the end of `make up STACK=team` writes it\n"
    )
    assert cli.main(["env", "--stack", "team"]) == 0
    assert capsys.readouterr().err == "" and stack.kubeconfig.exists()


def test_a_check_names_what_up_builds_until_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    for program in BY_NAME.values():
        if program.name != "trainer":
            program.built.parent.mkdir(parents=True)
            program.built.touch()
    assert cli.main(["needs"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("`make up` builds first, once from pinned sources: trainer; about ")
    BY_NAME["trainer"].built.parent.mkdir(parents=True)
    BY_NAME["trainer"].built.touch()
    assert (cli.main(["needs"]), capsys.readouterr().out) == (0, "")


def test_a_repair_takes_the_lock_of_a_killed_engine_away_before_it_asks(
    monkeypatch: pytest.MonkeyPatch,
):
    done: list[str] = []
    monkeypatch.setattr(engine, "release_lock", lambda stack, report: done.append(stack.name))
    monkeypatch.setattr(look, "_run", lambda *words: done.append(words[-3]) or 0)
    assert look.repair(argparse.Namespace(stack="dev", words=[])) == 0
    assert done == ["dev", "repair"]


@NEEDS_A_WORLD
def test_down_of_a_team_leaves_the_environment_and_the_world(machine: Path):
    cli.main(["up"])
    cli.main(["up", "--stack", "team"])
    assert cli.main(["down", "--stack", "team"]) == 0
    assert engine.resources(engine.find("team")) == []
    assert len(engine.resources(engine.find("dev"))) == 1
    assert world.running()


@NEEDS_A_WORLD
def test_down_of_the_environment_takes_its_teams_with_it(machine: Path):
    cli.main(["up"])
    cli.main(["up", "--stack", "team"])
    assert cli.main(["down", "--stack", "dev"]) == 0
    assert not world.running()


@NEEDS_A_WORLD
def test_what_is_left_in_the_account_without_a_stack_is_named_and_fails(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    cli.main(["up"])
    _inventory(
        monkeypatch,
        {"type": "ec2:instance", "id": "i-1", "name": "forgotten", "state": "running", "tags": {}},
    )
    assert cli.main(["down"]) == 1
    said = capsys.readouterr().out
    assert "ec2:instance  i-1  forgotten  running" in said and 'after `eval "$(make env)"`' in said
    assert cli.main(["down", "--force"]) == 0
    assert not world.running()


@pytest.mark.parametrize(
    ("stack", "said", "passes", "looks"),
    [
        ("dev", "2 errors in the stack file", False, "trainyard check  #"),
        (
            "dev",
            "1 error in the stack file",
            True,
            "make preview  # once Pulumi.dev.yaml is changed",
        ),
        ("dev", "connection reset", True, "trainyard status  #"),
        ("team", "connection reset", True, "trainyard status --stack team  #"),
        (
            "team",
            "server-side apply field conflict detected",
            True,
            "PULUMI_K8S_ENABLE_PATCH_FORCE=true make up STACK=team  #",
        ),
    ],
)
def test_after_a_failure_the_next_command_is_the_one_that_helps(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stack: str,
    said: str,
    passes: bool,
    looks: str,
):
    monkeypatch.setattr(steps, "check_passes", lambda _: passes)
    found, stages = engine.find(stack), Stages(Display())
    paths.LOGS.mkdir(parents=True)
    found.log.write_text("")
    stages.consume([{"diagnosticEvent": {"severity": "error", "message": said}}])
    assert steps.failed(found, stages, 255) == 1
    shown = capsys.readouterr().out
    assert (
        f"program: {said}" in shown
        and f"  {looks}" in shown
        and f"make up{found.chosen}  #" in shown
    )
    steps.failed(found, stages, 255, destroys=True)
    shown = capsys.readouterr().out
    assert "make up" not in shown and f"make down{found.chosen}  # continue from here" in shown


def test_after_a_failed_run_the_way_to_begin_it_again_is_named(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make up` alone fails on the same run, which it never starts again."""
    monkeypatch.setattr(steps, "_jobs_of", lambda _: ["mine", "other"])
    found, stages = engine.find("team"), Stages(Display())
    paths.LOGS.mkdir(parents=True)
    found.log.write_text("")
    gone = (
        "environment.jobs: this update deletes the schedule of often, and the runs that it started"
    )
    stages.consume([_event("error", "TrainJob training/mine is Failed: node rank 0 ended")])
    steps.failed(found, stages, 255)
    shown = capsys.readouterr().out
    assert "trainyard again mine --stack team  # count its run up" in shown
    assert "again other" not in shown and "has deleted nothing yet" not in shown
    stages.consume([_event("warning", gone)])
    steps.failed(found, stages, 255)
    assert "has deleted nothing yet" not in capsys.readouterr().out, "such an error stops no update"
    stages.consume([_event("error", "Job training/load is not ready: Failed")])
    steps.failed(found, stages, 255)
    said = capsys.readouterr().out
    assert "has deleted nothing yet that the stack file does not have any more" in said


def test_after_missing_roles_the_next_commands_make_them(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, stages = engine.find("team"), Stages(Display())
    paths.LOGS.mkdir(parents=True)
    found.log.write_text("")
    refusal = f"roles are missing; nothing was changed\n{NO_ROLE}"
    stages.consume([_event("warning", "zone_id: it is not set"), _event("error", refusal)])
    assert steps.failed(found, stages, 255) == 1
    warnings, failed, following = capsys.readouterr().out.strip().split("\n\n")
    assert warnings == "1 warning\n  zone_id: it is not set"
    assert failed.startswith("failed\n  program: roles are missing")
    commands = [line.rpartition("  # ")[0].strip() for line in following.splitlines()[1:]]
    assert commands[:2] == ['eval "$(make env STACK=team)"', principals.creation(ROLE)]
    assert commands[3:] == ["make up STACK=team", "make down STACK=team"]


@NEEDS_A_WORLD
def test_status_repeats_a_failure_until_an_update_succeeds(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    cli.main(["up"])
    stages = Stages(Display())
    stages.consume([{"diagnosticEvent": {"severity": "error", "message": "no more addresses"}}])
    steps.failed(engine.find("dev"), stages, 255)
    capsys.readouterr()
    cli.main(["status"])
    shown = capsys.readouterr().out
    assert "errors of the last update of dev\n" in shown
    assert "program: no more addresses" in shown
    with alone():
        cli.main(["status"])
    shown = capsys.readouterr().out
    assert "`make down` or `make preview` runs in this checkout" in shown and "failed" not in shown
    cli.main(["up"])
    capsys.readouterr()
    cli.main(["status"])
    shown = capsys.readouterr().out
    assert "failed" not in shown and "runs in this checkout" not in shown


@pytest.mark.parametrize(
    ("name", "left"), [("Created by Amazon FSx for fs-1", False), ("of somebody", True)]
)
def test_an_interface_that_aws_made_for_kept_data_is_not_left_over(name: str, left: bool):
    assert (
        down._is_of({"type": "network-interface", "id": "eni-1", "name": name}, {"fs-1"})
        is not left
    )


@NEEDS_A_WORLD
def test_faults_reach_the_account(machine: Path, capsys: pytest.CaptureFixture[str]):
    cli.main(["up"])
    capsys.readouterr()
    assert of_a_world.main(["fault", "throttle", "--service", "ec2", "--count", "2"]) == 0
    assert '"service": "ec2"' in capsys.readouterr().out


@NEEDS_A_WORLD
def test_env_survives_a_shell(machine: Path):
    cli.main(["up"])
    command = [".venv/bin/python", "-m", "development", "env"]
    exports = subprocess.run(
        command,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        env=os.environ | {"TRAINYARD_REHEARSAL": str(paths.STATE)},
        check=True,
    ).stdout
    told = subprocess.run(
        ["sh", "-euc", exports + 'echo "$AWS_ENDPOINT_URL $PATH"'], capture_output=True, text=True
    )
    assert told.stdout.startswith(f"{paths.world().account_url} ")
    assert str(Path(os.environ["PATH"].split(":")[0])) in told.stdout


@NEEDS_A_WORLD
def test_down_drains_and_repairs_the_stack_and_asks_nobody(
    machine: Path, monkeypatch: pytest.MonkeyPatch
):
    cli.main(["up"])
    operated: list[tuple[str, ...]] = []
    why: list[str] = []

    def record(stack: object, display: object, operation: str, doing: str, *words: str) -> int:
        operated.append((operation, *words))
        why.append(doing)
        return 0

    for module in (steps, down):
        monkeypatch.setattr(module, "operate", record)
    monkeypatch.setattr(engine, "is_in_a_cluster", lambda _: True)
    monkeypatch.setattr(down, "running", lambda _: [])
    assert cli.main(["down"]) == 0
    assert operated == [("drain", "dev", "--yes"), ("repair", "dev", "--yes")]
    assert "what it lacks would stay in the account" in why[1]


def test_down_of_a_protected_environment_deletes_nothing_of_its_teams_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """It destroyed three teams with their jobs, and then met the protection."""
    dev, team = engine.Stack(name="dev"), engine.Stack(name="team")
    told = {"dev": {"deletion_protection": True}, "team": {}}
    destroyed = list[str]()
    monkeypatch.setattr(engine.Stack, "refers_to", property(lambda it: it.name == "team" and "dev"))
    monkeypatch.setattr(engine, "prepare", lambda *_: None)
    monkeypatch.setattr(engine, "stacks", lambda: [team, dev])
    monkeypatch.setattr(engine, "outputs", lambda stack: told[stack.name])
    monkeypatch.setattr(engine, "resources", lambda stack: [])
    monkeypatch.setattr(down.world, "lost", lambda: False)
    monkeypatch.setattr(down.world, "running", lambda: True)
    monkeypatch.setattr(down, "_destroy", lambda stack, display: destroyed.append(stack.name))
    monkeypatch.setattr(down, "_end_world", lambda kept, display: 0)
    for stack in (None, "dev"):
        assert down.down(argparse.Namespace(stack=stack, force=False)) != 0
        said = capsys.readouterr().err
        assert "the cluster of stack dev is protected from deletion" in said
        assert "and run `make up` first" in said and said.endswith("Nothing was deleted.\n")
    assert destroyed == []
    assert down.down(argparse.Namespace(stack="team", force=False)) == 0
    assert destroyed == ["team"], "a team can go"


def test_down_without_a_world_says_so(machine: Path, capsys: pytest.CaptureFixture[str]):
    assert cli.main(["down"]) == 0
    assert "no world runs" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["env", "kubeconfig"])
def test_a_command_that_needs_a_world_says_how_to_get_one(
    machine: Path, command: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main([command]) == 1
    assert "`make up` starts one" in capsys.readouterr().err


def test_up_on_a_machine_without_namespaces_exits_2_at_once(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(world, "obstacle", lambda: "remedy: sudo sysctl …")
    assert cli.main(["up"]) == 2
    assert "sysctl" in capsys.readouterr().err


def test_a_second_up_is_refused_while_one_is_at_work(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    with (paths.STATE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert cli.main(["up"]) == 1
    assert "runs in this checkout" in capsys.readouterr().err


def test_an_unknown_stack_is_refused_before_anything_starts(
    machine: Path, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["up", "--stack", "prod"]) == 1
    assert "the stacks are dev, team" in capsys.readouterr().err
    assert not world.running()


def _stopped(*_: object, **__: object) -> int:
    """What somebody ends with ctrl-C."""
    raise KeyboardInterrupt


@pytest.mark.parametrize(("stack", "chosen"), [("dev", ""), ("plat", " STACK=plat")])
def test_a_word_that_is_stopped_names_the_commands_of_its_stack(
    stack: str, chosen: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(act=_stopped, stack=stack)
    monkeypatch.setattr(cli, "parser", lambda: argparse.Namespace(parse_args=lambda _: options))
    monkeypatch.setattr(cli, "begun", lambda _: [])
    assert cli.main(["up"]) == 130
    said = capsys.readouterr().err
    assert "stopped: no run of this stack goes on; " in said
    assert f"`make up{chosen}` continues, `make down{chosen}` deletes everything" in said


TEAMS = {
    "items": [
        {"metadata": {"namespace": "team-nlp", "name": "big"}, "status": {}},
        {"metadata": {"namespace": "training", "name": "mine"}, "status": {}},
        {
            "metadata": {"namespace": "team-nlp", "name": "over"},
            "status": {"conditions": [{"type": "Complete", "status": "True"}]},
        },
    ]
}
"""TrainJobs of the cluster."""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({}, "stopped. Not ended, and on AWS they go on and cost money: mine, theirs."),
        (OSError(), "stopped. Not ended, and on AWS they go on and cost money: mine, theirs."),
        (ApiError(404, {}), "stopped: no run of this stack goes on"),
        (TEAMS, "and on AWS they go on and cost money: mine, theirs, team-nlp/big."),
    ],
)
def test_a_word_that_is_stopped_says_which_jobs_are_in_the_cluster(
    answer: Any,
    said: str,
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A job that somebody has stopped is none of them. An operator who upgrades the environment of a team is told of
    its gang."""
    server: Any = argparse.Namespace(request=lambda *_: _raised(answer))
    if answer == TEAMS:
        server.request = lambda _, path: TEAMS if path.endswith("/trainjobs") else {}
    monkeypatch.setattr(up.control_plane, "admin", lambda *_, **__: server)
    kinds = {
        "mine": "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob",
        "theirs": "kubernetes:kubeflow.org/v1:PyTorchJob",
        "space": "kubernetes:core/v1:Namespace",
    }
    state = [
        {"type": kind, "urn": f"urn:pulumi:dev::t::{kind}::{name}", "id": f"training/{name}"}
        for name, kind in kinds.items()
    ]
    options = argparse.Namespace(act=_stopped, stack="dev")
    monkeypatch.setattr(cli, "parser", lambda: argparse.Namespace(parse_args=lambda _: options))
    monkeypatch.setattr(engine, "resources", lambda _: state)
    assert cli.main(["up"]) == 130
    assert said in capsys.readouterr().err


def _raised(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise answer
    return answer


def test_status_says_that_the_last_update_was_stopped(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = engine.find("dev")
    paths.LOGS.mkdir(parents=True)
    monkeypatch.setattr(engine, "update", _stopped)
    with pytest.raises(KeyboardInterrupt):
        steps.update(stack, Stages(Display()), "up")
    assert steps.failure(stack).read_text() == "  it was stopped by ctrl-C before its end"


RUN = {"namespace": "training", "job": "t5-large", "outcome": "Running", "ended": None}
RUN |= {"created": "2027-03-01T12:04:09Z", "nodes": 2, "usd": "12.3400"}


@pytest.mark.parametrize(
    ("code", "runs", "said"),
    [
        (
            0,
            [RUN, RUN | {"ended": "2027-03-01T13:00:00Z"}],
            [
                "deletes training/t5-large: Running, created 2027-03-01T12:04 UTC, on 2 nodes, 12.34 USD so far"
            ],
        ),
        (0, [], []),
        (1, [], ["the cluster does not say which jobs run"]),
    ],
)
@pytest.mark.usefixtures("checkout")
def test_jobs_that_run_are_named_before_down_deletes_them(
    code: int, runs: list[Any], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        assert command[2:] == ["trainyard", "runs", "dev", "--json"], "a team knows no dollars"
        if code:
            raise subprocess.CalledProcessError(code, command)
        return subprocess.CompletedProcess(command, 0, json.dumps({"runs": runs}))

    outputs = {"kubeconfig": "{}", "namespace": "training"}
    monkeypatch.setattr(engine, "outputs", lambda _: outputs)
    monkeypatch.setattr(engine, "complete", lambda _: {})
    monkeypatch.setattr(engine, "resources", lambda _: there)
    monkeypatch.setattr(down.subprocess, "run", answer)
    there = [{"type": "kubernetes:core/v1:Namespace"}]
    assert down.running(engine.Stack(name="dev")) == said
    assert down.running(engine.Stack(name="team")) == said, "of the environment's history"
    outputs["namespace"] = "another"
    assert down.running(engine.Stack(name="team")) == (said if code else [])
    there = [{"type": "aws:ec2/vpc:Vpc"}]
    assert down.running(engine.Stack(name="dev")) == [], "the outputs outlive the cluster"


ROOT = "urn:pulumi:dev::trainyard::"
HOME = {
    "id": "fs-1",
    "protect": True,
    "custom": True,
    "type": "aws:efs/fileSystem:FileSystem",
    "urn": f"{ROOT}aws:efs/fileSystem:FileSystem::home",
    "outputs": {"region": "us-east-2"},
    "dependencies": [f"{ROOT}aws:ec2/vpc:Vpc::network"],
}
NETWORK = {
    "id": "vpc-1",
    "custom": True,
    "type": "aws:ec2/vpc:Vpc",
    "urn": f"{ROOT}aws:ec2/vpc:Vpc::network",
}
POD = {
    "id": "training",
    "custom": True,
    "type": "kubernetes:core/v1:Namespace",
    "urn": f"{ROOT}kubernetes:core/v1:Namespace::training",
}


@pytest.mark.parametrize(
    ("there", "lines", "reserved", "did", "said"),
    [
        ([NETWORK, POD], [], [], ["repair", "update"], []),
        (
            [NETWORK, POD],
            [],
            ["no destroy ends reservation cr-1"],
            ["waits 5 s", "repair", "update"],
            ["no destroy ends reservation cr-1"],
        ),
        (
            [NETWORK, POD],
            ["deletes training/t5-large: Running"],
            [],
            ["waits 5 s", "repair", "update"],
            ["deletes training/t5-large", "ctrl-C in the next 5 seconds leaves all as it is"],
        ),
        (
            [NETWORK, HOME, POD],
            [],
            [],
            ["waits 5 s", "repair", "update"],
            [
                "the destroy keeps FileSystem home fs-1, billed by the data in it, because of data: keep",
                "first write `data: delete` at it in Pulumi.dev.yaml and run `make up`",
            ],
        ),
        (
            [
                NETWORK,
                POD,
                {"type": "trainyard:jobs:History", "urn": f"{ROOT}trainyard:jobs:History::history"},
            ],
            [],
            [],
            ["waits 5 s", "repair", "update"],
            ["the history of runs goes with the cluster: `trainyard runs dev --json > runs.json`"],
        ),
        (
            [NETWORK, HOME],
            [],
            ["no word"],
            [],
            ["stack dev has nothing to delete: what is left is kept"],
        ),
    ],
)
def test_down_says_what_ends_and_what_is_kept_and_waits_for_a_ctrl_c(
    there: list[Any],
    lines: list[str],
    reserved: list[str],
    did: list[str],
    said: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The name of the job and its deletion came in one second. A second `down` looked for jobs in a cluster that was
    gone."""
    done: list[str] = []
    monkeypatch.setattr(engine, "prepare", lambda *_: None)
    monkeypatch.setattr(engine, "interrupted", lambda _: False)
    monkeypatch.setattr(engine, "resources", lambda _: there)
    monkeypatch.setattr(engine, "outputs", lambda _: {})
    monkeypatch.setattr(down, "running", lambda _: lines)
    monkeypatch.setattr(down, "reservations", lambda *_: reserved)
    monkeypatch.setattr(down.time, "sleep", lambda seconds: done.append(f"waits {seconds} s"))
    for name in ("repair", "update"):
        monkeypatch.setattr(down, name, lambda *_, name=name: done.append(name))
    down._announce([engine.Stack(name="dev")], down.Display())
    assert down._destroy(engine.Stack(name="dev"), down.Display()) == 0
    shown = capsys.readouterr().out
    assert done == did and all(each in shown for each in said)
    assert ("ctrl-C" in shown) == ("waits 5 s" in did)


def test_down_says_all_of_an_environment_and_its_teams_before_the_first_is_touched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ctrl-C leaves all as it is` was said again when the first team was gone."""
    dev, team = engine.Stack(name="dev"), engine.Stack(name="team")
    did = list[str]()
    monkeypatch.setattr(
        engine.Stack, "refers_to", property(lambda it: "dev" if it == team else None)
    )
    monkeypatch.setattr(engine, "resources", lambda _: [POD])
    monkeypatch.setattr(engine, "is_in_a_cluster", lambda _: True)
    monkeypatch.setattr(engine, "interrupted", lambda _: False)
    monkeypatch.setattr(down, "running", lambda stack: [f"jobs of {stack.name}"])
    monkeypatch.setattr(down, "reservations", lambda *_: [])
    monkeypatch.setattr(down.keeping, "lost", lambda _: ["deletes store home"])
    monkeypatch.setattr(down.time, "sleep", lambda seconds: did.append("waits"))
    down._announce([team, dev], down.Display())
    shown = capsys.readouterr().out
    assert did == ["waits"] and shown.count("ctrl-C") == 1
    assert "jobs of dev" in shown and "jobs of team" not in shown, "the environment names them"
    down._announce([team], down.Display())
    assert "jobs of team" in capsys.readouterr().out


@pytest.mark.parametrize("of_others", [False, True])
def test_what_is_kept_is_listed_with_the_commands_that_delete_it(
    of_others: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where objects of no stack were left, a reader got the id of what was kept, and nothing more."""
    there = [{"id": "fs-1", "name": "home", "type": "file-system", "state": "available"}]
    there += [{"id": "mine", "name": "mine", "type": "role", "state": "there"}] * of_others
    monkeypatch.setattr(down.world, "ask", lambda *_: there)
    monkeypatch.setattr(down, "reservations", lambda *_: ["no destroy ends reservation cr-1"])
    assert down._end_world([NETWORK, HOME], down.Display()) == (FAILED if of_others else 0)
    said = capsys.readouterr().out
    assert said.index("no destroy ends reservation cr-1") > said.index("FileSystem home fs-1")
    assert "FileSystem home fs-1, billed by the data in it" in said
    assert ("no stack has made these" in said) == of_others
    commands = [line.strip().partition("  # ")[0] for line in said.splitlines() if "  # " in line]
    assert commands == [
        'eval "$(make env)"',
        *keeping.deletions(HOME),
        f"pulumi state delete '{HOME['urn']}' --force --yes --stack dev",
        "make down",
    ]
    assert "data: delete" not in said, "that would create the whole environment anew"


def test_status_without_a_cluster_lists_what_is_kept(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(stack="dev")
    monkeypatch.setattr(look, "_busy", lambda: False)
    monkeypatch.setattr(look, "reservations", lambda *_: ["no destroy ends reservation cr-1"])
    for there, said in (([NETWORK, HOME], True), ([], False)):
        monkeypatch.setattr(engine, "resources", lambda _, there=there: there)
        assert look._of_stack(options, []) == 0
        shown = capsys.readouterr().out
        assert "no cluster runs: `make up` creates one" in shown
        assert ("kept: FileSystem home fs-1" in shown) == said
        assert ("aws efs delete-file-system --file-system-id fs-1" in shown) == said
        assert shown.find("make env") < shown.find("aws efs") or not said
        assert "no destroy ends reservation cr-1" in shown


def test_status_counts_the_processes_of_the_rehearsal_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    running = [Process(pid=pid, name="etcd", rss_mib=512) for pid in (7, 8, 9)]
    monkeypatch.setattr(look.world, "list_processes", lambda: running)
    monkeypatch.setattr(look.world, "incidents", lambda: ["etcd ended and was started again"])
    monkeypatch.setattr(look, "_of_stack", lambda *_: 1)
    assert look.status(argparse.Namespace(stack="dev")) == 1
    assert capsys.readouterr().out == (
        "\nthe rehearsal runs: 3 processes with 1.5 GiB, which `.venv/bin/python -m rehearsal status` lists\n"
        "  etcd ended and was started again\n"
    )
