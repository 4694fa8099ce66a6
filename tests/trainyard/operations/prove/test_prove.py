"""`trainyard prove` as a whole, with steps that only say that they were called: what is asked, what is begun,
what is deleted, and where a killed call goes on."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.prove.test_steps import CONFIG, KEY
from tests.trainyard.operations.terminal import Terminal
from trainyard.cli.new.project import IMAGE
from trainyard.operations.prove import acts, prove
from trainyard.operations.prove.hour import Failed, Hour, LimitReached, NothingMade
from trainyard.operations.prove.record import load
from trainyard.operations.prove.steps import NAMES
from trainyard.operations.reach.pulumi import PulumiError

Act = Callable[[Hour, bool], None]
ALL = [*NAMES]


class Killed(BaseException):
    """The end of a program that nothing can catch."""


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Steps that were called. Each does nothing else; the stack has no resources."""
    environment = {name: value for name, value in CONFIG[KEY].items() if name != "jobs"}
    text = yaml.safe_dump({"config": {**CONFIG, KEY: environment}})
    (tmp_path / "Pulumi.prove.yaml").write_text(text)
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prove, "deployment", lambda _: {"deployment": {}})
    monkeypatch.setattr(prove.shutil, "which", lambda name: f"/bin/{name}")
    found: list[str] = []

    def says(name: str) -> Act:
        return lambda hour, resumed: found.append(f"{name} again" if resumed else name)

    monkeypatch.setattr(prove, "ACTS", {name: says(name) for name in acts.ACTS})
    return found


def _with(monkeypatch: pytest.MonkeyPatch, **acts_: Act) -> None:
    monkeypatch.setattr(prove, "ACTS", {**prove.ACTS, **acts_})


def _raises(error: BaseException) -> Act:
    def act(hour: Hour, resumed: bool) -> None:
        raise error

    return act


def _prove(*words: str, dollars: str | None = "15", yes: bool = True) -> int:
    limit = ["--at-most-dollars", dollars] if dollars else []
    return run_word(
        "prove", ["prove", "--image", "mine:1", *limit, *(["--yes"] if yes else []), *words]
    )


def _states() -> Mapping[str, str]:
    proof = load()
    assert proof
    return {step.name: step.state for step in proof.steps}


def test_a_cluster_of_somebody_else_is_refused_before_anything_is_asked(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("Pulumi.prove.yaml")
    text = yaml.safe_load(file.read_text())
    text["config"][KEY]["cluster"]["name"] = "research"
    file.write_text(yaml.safe_dump(text))
    assert _prove() == 1 and called == []
    assert capsys.readouterr().err == (
        "environment.cluster.name: must not be set, because the hour makes a cluster, measures it and deletes it"
        " with every job in it; got research. Fix: trainyard new environment prove --name prove in another"
        " folder\n"
    )


def test_every_step_is_priced_before_it_is_done_and_the_page_ends_it(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _prove() == 0
    assert called == ALL and _states() == dict.fromkeys(ALL, "done")
    said = capsys.readouterr().out
    assert "questions: asks the account" in said and "costs nothing" in said
    assert said.count("at most") >= 3 and "where the plan erred" in said
    assert Path("prove.txt").read_text() in said
    assert _prove() == 0 and called == ALL, "it is over"


def test_with_no_dollars_only_what_costs_nothing_is_done_and_more_dollars_go_on(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _prove(dollars="0") == 0
    assert called == ["questions"] and _states() == {"questions": "done"}
    assert "small: not begun, because 0.00 USD are left of the limit" in capsys.readouterr().out
    assert _prove(dollars="15") == 0 and called == ALL


def test_a_step_that_does_not_fit_ends_the_hour_and_what_was_made_is_deleted(
    called: list[str],
) -> None:
    assert _prove(dollars="2.50") == 0
    assert called == ["questions", "small", "destroy", "left"]


@pytest.mark.parametrize("name", ["small", "gpu", "run"])
def test_a_step_that_fails_is_kept_word_for_word_and_what_was_made_is_deleted(
    name: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with(monkeypatch, **{name: _raises(Failed("VpcLimitExceeded in 123456789012"))})
    assert _prove() == 1
    before = ALL[: ALL.index(name)]
    assert called == [*before, "destroy", "left"] and _states()[name] == "failed"
    assert "VpcLimitExceeded in <account>" in Path("prove.json").read_text()
    assert "VpcLimitExceeded in <account>" in Path("prove.txt").read_text()


def test_a_step_that_has_made_nothing_deletes_nothing_and_is_tried_again(
    called: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = prove.ACTS
    _with(monkeypatch, small=_raises(NothingMade("passphrase must be set")))
    assert _prove() == 1
    assert called == ["questions"] and _states() == {"questions": "done", "small": "failed"}
    said = capsys.readouterr().err
    assert "small failed: passphrase must be set\n" in said and "which costs money" not in said
    assert "nothing was made: the same command begins small again" in said
    assert _prove("--destroy", dollars=None) == 0 and called == ["questions"]
    monkeypatch.setattr(prove, "ACTS", own)
    assert _prove(dollars=None) == 0 and called == ALL


def test_a_step_that_the_limit_stops_is_no_failure(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with(monkeypatch, gpu=_raises(LimitReached("it would have cost more")))
    assert _prove() == 0
    assert _states() == {
        **dict.fromkeys(("questions", "small"), "done"),
        "gpu": "stopped",
        **dict.fromkeys(("destroy", "left"), "done"),
    }


def test_questions_that_fail_are_asked_again_and_nothing_is_made(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = prove.ACTS
    _with(monkeypatch, questions=_raises(Failed("no quota")))
    assert _prove() == 1 and called == [] and _states() == {"questions": "failed"}
    monkeypatch.setattr(prove, "ACTS", own)
    assert _prove() == 0 and called == ALL


@pytest.mark.parametrize("name", ALL)
def test_a_call_that_is_killed_in_a_step_goes_on_there(
    name: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = prove.ACTS
    _with(monkeypatch, **{name: _raises(Killed())})
    with pytest.raises(Killed):
        _prove()
    done = ALL[: ALL.index(name)]
    assert _states() == {**dict.fromkeys(done, "done"), name: "running"}
    called.clear()
    monkeypatch.setattr(prove, "ACTS", own)
    assert _prove(dollars=None) == 0
    first = name if name == "questions" else f"{name} again"
    assert called == [first, *ALL[ALL.index(name) + 1 :]]
    assert _states() == dict.fromkeys(ALL, "done")


@pytest.mark.parametrize("name", ["small", "gpu", "run"])
def test_destroy_only_deletes_what_a_killed_call_has_made(
    name: str, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _with(monkeypatch, **{name: _raises(Killed())})
    with pytest.raises(Killed):
        _prove()
    called.clear()
    assert _prove("--destroy", dollars=None) == 0
    assert called == ["destroy", "left"] and _states()[name] == "stopped"


def test_deleting_that_fails_is_tried_again_by_the_next_call_and_nothing_is_looked_for_before(
    called: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = prove.ACTS
    _with(monkeypatch, destroy=_raises(Failed("DependencyViolation")))
    assert _prove() == 1 and "left" not in called
    assert "not everything is deleted, which costs money" in capsys.readouterr().err
    monkeypatch.setattr(prove, "ACTS", own)
    called.clear()
    assert _prove(dollars=None) == 0 and called == ["destroy again", "left"]


def test_what_is_left_makes_the_exit_code_1(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def finds(hour: Hour, resumed: bool) -> None:
        hour.proof.left = ["log group /aws/eks/prove"]

    _with(monkeypatch, left=finds)
    assert _prove() == 1 and "log group /aws/eks/prove" in Path("prove.txt").read_text()


def test_each_step_is_asked_for_and_a_no_deletes_what_was_made(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(monkeypatch, "n")
    assert _prove(yes=False) == 3 and called == []
    assert terminal.asked
    answers = iter(["y", "y", "n"])
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    assert _prove(yes=False) == 3 and called == ["questions", "small", "destroy", "left"]


def test_without_a_terminal_nothing_is_begun(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Terminal(monkeypatch, None)
    assert _prove(yes=False) == 2 and called == []


# ---- never somebody's own environment


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run_word("prove", [*words, "--yes"]) == 1
    assert not Path("prove.json").exists()
    return capsys.readouterr().err


LIMIT = ("--image", "mine:1", "--at-most-dollars", "15")


def test_a_stack_of_another_name_is_refused(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("Pulumi.dev.yaml").write_text(Path("Pulumi.prove.yaml").read_text())
    said = _refused(capsys, "dev", *LIMIT)
    assert (
        "--stack: must begin with prove, because the stack is destroyed at the end; got dev" in said
    )
    assert called == []


def test_a_stack_that_has_resources_is_refused(
    called: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = {"deployment": {"resources": [{}, {}, {}]}}
    monkeypatch.setattr(prove, "deployment", lambda _: state)
    assert "must have no resources before a first call" in _refused(capsys, "prove", *LIMIT)

    def missing(_: str) -> dict[str, Any]:
        raise PulumiError("no stack named 'prove' found")

    monkeypatch.setattr(prove, "deployment", missing)
    assert _prove() == 0 and called == ALL


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("prove", "--image", "mine:1"), "--at-most-dollars is missing"),
        (("prove", "--at-most-dollars", "15"), "--image is missing, and no runtime names one"),
        (("prove", *LIMIT, "--destroy"), "prove.json: must exist for --destroy"),
        (("prove-2", *LIMIT), "Pulumi.prove-2.yaml: must exist; got no file. Fix: trainyard new"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_is_said_with_its_fix(
    words: tuple[str, ...], says: str, called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in _refused(capsys, *words) and called == []


def test_programs_that_are_missing_are_named_before_anything_is_begun(
    called: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    there = {"kubectl": "/bin/kubectl"}
    monkeypatch.setattr(prove.shutil, "which", there.get)
    assert "PATH: must have pulumi, helm; got none" in _refused(capsys, "prove", *LIMIT)


def test_a_region_without_prices_is_refused_because_no_limit_could_be_kept(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("Pulumi.prove.yaml")
    file.write_text(file.read_text().replace("us-east-1", "us-east-2"))
    said = _refused(capsys, "prove", *LIMIT)
    assert "no price of us-east-2 is known of NAT gateway" in said and "--prices" in said


def test_a_stack_file_with_errors_is_refused_with_them(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path("Pulumi.prove.yaml")
    file.write_text(file.read_text().replace("us-east-1a", "us-east-1z"))
    assert "environment.zone" in _refused(capsys, "prove", *LIMIT)


def test_the_image_is_that_of_the_file_where_none_is_named(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path("Pulumi.prove.yaml")
    values = yaml.safe_load(file.read_text())
    own = {"resilient": {"image": "theirs:1", "max_restarts": 1}}
    values["config"][KEY]["trainer"]["own_runtimes"] = own
    file.write_text(yaml.safe_dump(values))
    images = list[str]()
    _with(monkeypatch, questions=lambda hour, resumed: images.append(hour.image))
    assert run_word("prove", ["prove", "--at-most-dollars", "0", "--yes"]) == 0
    assert images == ["theirs:1"]


def test_the_project_of_the_page_can_be_proved(
    called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/prove.md, its first block: what `trainyard new` writes there is what this word takes."""
    page = (CHECKOUT / "docs/prove.md").read_text()
    block = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0]
    new, folder, _, asks = block.replace("<host>/<repository>@<tag>", "a.example/b@v1").splitlines()
    assert run_word("new", shlex.split(new)[2:]) == 0
    monkeypatch.chdir(shlex.split(folder)[1])
    words = [word for word in shlex.split(asks)[2:] if word != "--live"]
    images = list[str]()
    _with(monkeypatch, questions=lambda hour, resumed: images.append(hour.image))
    assert run_word("prove", [*words, "--yes"]) == 0
    assert images == [IMAGE] and _states() == {"questions": "done"}


def test_the_prices_of_the_page_are_above_those_of_the_steps(
    called: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page = (CHECKOUT / "docs/prove.md").read_text()
    told = dict(re.findall(r"^\| (small|gpu|run) \|.*\| (\d+) USD \|$", page, re.MULTILINE))
    _prove()
    asked = dict(
        re.findall(
            r"^(\w+): .* at most ([\d.]+) USD, deleting", capsys.readouterr().out, re.MULTILINE
        )
    )
    assert told.keys() == asked.keys()
    assert all(0 <= float(told[name]) - float(asked[name]) < 1 for name in told)


def test_the_file_has_a_schema_and_no_name_of_this_machine(called: list[str]) -> None:
    _prove()
    found = json.loads(Path("prove.json").read_text())
    assert found["schema"] == 1 and str(Path.cwd()) not in json.dumps(found)
