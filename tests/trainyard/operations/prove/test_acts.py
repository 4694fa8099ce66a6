"""Actions of the steps: which words are called, and what is kept of their answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.trainyard.operations.prove.proofs import whole
from tests.trainyard.operations.prove.test_steps import CONFIG, KEY
from trainyard.operations.prove import acts
from trainyard.operations.prove import left as leftovers
from trainyard.operations.prove.hour import Failed, Hour, NothingMade, Output
from trainyard.operations.prove.steps import JOB, STEPS
from trainyard.operations.reach.pulumi import PulumiError

Object = dict[str, Any]
GOOD = Output(code=0, out="", err="")


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Words and updates that were called, each with its first argument."""
    return []


@pytest.fixture
def hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: list[str]) -> Hour:
    """An hour without a cluster, whose programs answer ANSWERS, else nothing."""
    monkeypatch.chdir(tmp_path)
    environment = {name: value for name, value in CONFIG[KEY].items() if name != "jobs"}
    text = {"config": {**CONFIG, KEY: environment}, "encryptionsalt": "v1:x"}
    (tmp_path / "Pulumi.prove.yaml").write_text(yaml.safe_dump(text))
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    proof = whole()
    proof.steps, proof.plan, proof.seen, proof.nodes, proof.probes = [], [], [], [], {}
    made = Hour(
        stack="prove", live=True, image="mine:1", wait_minutes=0, limit=Decimal(15), proof=proof
    )
    answers: dict[str, Output] = {}
    made.answers = answers  # type: ignore[attr-defined]

    def program(self: Hour, *words: str) -> Output:
        called.append(words[0])
        return answers.get(words[0], GOOD)

    monkeypatch.setattr(Hour, "tool", program)
    monkeypatch.setattr(Hour, "engine", program)
    monkeypatch.setattr(Hour, "pulumi_version", lambda _: "v3")
    monkeypatch.setattr(acts, "deployment", lambda _: {"deployment": {"resources": [{"urn": "a"}]}})
    monkeypatch.setattr(acts, "pulumi", lambda *words: called.append(words[1]) or "")

    @contextmanager
    def silent(*_: Any, **__: Any) -> Iterator[None]:
        raise RuntimeError("no cluster")
        yield

    monkeypatch.setattr(acts, "reached", silent)
    return made


def _begin(hour: Hour, name: str) -> None:
    hour.begin(next(step for step in STEPS if step.name == name), Decimal("1"), Decimal("2"))


def _file() -> Object:
    return yaml.safe_load(Path("Pulumi.prove.yaml").read_text())


def _answers(hour: Hour, **answers: Output) -> None:
    hour.answers.update(answers)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("name", "pools"), [("small", ["cpu"]), ("gpu", ["cpu", "gpu"])])
def test_a_step_writes_its_stack_file_makes_it_and_asks_a_pod_on_a_new_node(
    name: str, pools: list[str], hour: Hour, called: list[str]
) -> None:
    said = f"something else\n{acts.MARK}kernel 6.12\n{acts.MARK}Lustre client 2.15\n"
    _answers(hour, shell=Output(code=0, out=said, err=""))
    _begin(hour, name)
    acts.ACTS[name](hour, False)
    assert called == ["up", "shell"]
    assert sorted(_file()["config"][KEY]["pools"]) == pools and _file()["encryptionsalt"] == "v1:x"
    assert hour.proof.probes == {pools[-1]: ["kernel 6.12", "Lustre client 2.15"]}
    assert hour.proof.versions["Kubernetes"] == "1.35"
    assert {stage.row for stage in hour.proof.plan} >= {"eks.cluster", "ec2.nat-gateway", ""}
    assert [one.row for one in hour.proof.seen] == [f"all of {name}"]


def test_after_a_kill_the_state_is_mended_first_and_the_whole_is_no_duration(
    hour: Hour, called: list[str]
) -> None:
    _begin(hour, "small")
    acts.small(hour, True)
    assert called == ["cancel", "repair", "up", "shell"] and hour.proof.seen == []


def test_an_update_that_fails_keeps_the_engines_errors_and_starts_no_pod(
    hour: Hour, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = {"diagnosticEvent": {"severity": "error", "message": "VpcLimitExceeded"}}
    monkeypatch.setattr(Hour, "events", lambda _: [error])
    _answers(hour, up=Output(code=255, out="", err="update failed"))
    _begin(hour, "small")
    with pytest.raises(Failed, match="update failed"):
        acts.small(hour, False)
    assert called == ["up"] and hour.done.refusals == ["VpcLimitExceeded"]


def _no_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """As before `pulumi stack init`, which fails."""

    def fails(*words: str) -> Object:
        raise PulumiError(f"pulumi {words[1] if words[1:] else 'stack export'}: error: no stack")

    monkeypatch.setattr(acts, "deployment", fails)
    monkeypatch.setattr(acts, "pulumi", fails)


def _updated(name: str) -> None:
    """As after the beginning of an update in a step."""
    (folder := Path(".prove")).mkdir()
    (folder / f"events-{name}-0.json").touch()


def test_a_step_that_fails_before_its_stack_is_there_has_made_nothing(
    hour: Hour, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _no_stack(monkeypatch)
    _begin(hour, "small")
    with pytest.raises(NothingMade, match="no stack"):
        acts.small(hour, False)
    assert called == []


def test_an_update_that_fails_before_its_first_resource_has_made_nothing(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answers(hour, up=Output(code=255, out="", err="passphrase must be set"))
    _begin(hour, "small")
    state: Object = {"deployment": {}}
    monkeypatch.setattr(acts, "deployment", lambda _: state)
    with pytest.raises(NothingMade, match="passphrase must be set"):
        acts.small(hour, False)
    state["deployment"] = {"pending_operations": [{"type": "creating"}]}
    with pytest.raises(Failed) as found:
        acts.small(hour, False)
    assert not isinstance(found.value, NothingMade), "AWS may have made it"


def test_a_later_step_without_an_answer_of_the_engine_may_have_made_something(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    _updated("small")
    _no_stack(monkeypatch)
    _begin(hour, "gpu")
    with pytest.raises(PulumiError, match="no stack"):
        acts.gpu(hour, False)
    with pytest.raises(Failed, match="no stack"):
        acts.destroy(hour, False)


@pytest.mark.parametrize("there", [False, True], ids=["no stack", "an empty stack"])
def test_nothing_is_deleted_and_nothing_is_left_where_nothing_was_made(
    there: bool, hour: Hour, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        monkeypatch.setattr(acts, "deployment", lambda _: {"deployment": {}})
    else:
        _no_stack(monkeypatch)
    _begin(hour, "destroy")
    acts.destroy(hour, False)
    monkeypatch.setattr(acts.time, "sleep", lambda _: pytest.fail("it waits for nothing"))
    hour.wait_minutes, hour.proof.left = 10, ["what an earlier call has found"]
    _begin(hour, "left")
    acts.left(hour, False)
    assert called == [] and hour.proof.left == []


def test_the_questions_are_about_the_whole_of_the_hour(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    pools = list[str]()

    def checked(options: Any) -> int:
        assert options.asks and options.stack == "prove"
        pools.extend(sorted(_file()["config"][KEY]["pools"]))
        print("  warning  account: something\n  error    environment.zone: must be there; got x")
        return 1

    monkeypatch.setattr(acts.check, "main", checked)
    _begin(hour, "questions")
    with pytest.raises(Failed, match="^error    environment.zone: must be there; got x$"):
        acts.questions(hour, False)
    assert pools == ["cpu", "gpu"] and len(hour.proof.answers) == 2


VERDICT = {
    "line": "all-reduce",
    "of": "1024",
    "node": "ip-10-0-0-1",
    "value": 3.0,
    "unit": "GB/s",
    "bound": None,
    "at_most": False,
    "verdict": "measured",
    "why": "",
    "before": None,
}


def _write_job() -> None:
    text = _file()
    text["config"][KEY]["jobs"] = {JOB: {"pool": "gpu"}}
    Path("Pulumi.prove.yaml").write_text(yaml.safe_dump(text))


@pytest.mark.parametrize("there", [False, True], ids=["new", "there"])
def test_a_run_is_the_entry_that_accept_writes_and_its_lines_are_kept_without_nodes(
    there: bool, hour: Hour, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if there:
        _write_job()
    monkeypatch.setattr(acts, "_await_job", lambda _: "last words")
    monkeypatch.setattr(acts, "_plan", lambda _: None)
    _answers(hour, accept=Output(code=0, out=json.dumps({"verdicts": [VERDICT]}), err=""))
    _begin(hour, "run")
    acts.run(hour, False)
    assert called == [*([] if there else ["accept"]), "up", "accept", "status"]
    [kept] = hour.proof.verdicts
    assert "node" not in kept and kept["line"] == "all-reduce" and hour.done.refusals == []


def test_a_run_of_which_a_line_fails_has_failed_and_keeps_its_lines(
    hour: Hour, called: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "_await_job", lambda _: "last words")
    monkeypatch.setattr(acts, "_plan", lambda _: None)
    bad = VERDICT | {"verdict": "fail"}
    found = {"verdicts": [VERDICT | {"line": "restart"}, bad, bad | {"of": "2048"}]}
    _write_job()
    _answers(hour, accept=Output(code=1, out=json.dumps(found), err=""))
    _begin(hour, "run")
    with pytest.raises(Failed, match="^the nodes are not accepted: all-reduce$"):
        acts.run(hour, False)
    assert len(hour.proof.verdicts) == 3 and called[-1] == "status"


def test_in_a_rehearsal_a_run_needs_no_results_because_its_image_may_have_no_torch(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "_await_job", lambda _: "last words")
    monkeypatch.setattr(acts, "_plan", lambda _: None)
    _write_job()
    _answers(hour, accept=Output(code=1, out="", err="TrainJob has ended (Complete)"))
    hour.live = False
    _begin(hour, "run")
    acts.run(hour, False)
    assert hour.done.refusals == ["TrainJob has ended (Complete)", "last words"]


def test_a_run_without_results_is_a_refusal_with_the_last_words_of_its_ranks(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acts, "_await_job", lambda _: "last words")
    monkeypatch.setattr(acts, "_plan", lambda _: None)
    why = "stack prove: somewhere\nTrainJob has ended (Failed)\nnext: trainyard status"
    _answers(hour, accept=Output(code=0, out="", err=why))
    _begin(hour, "run")
    with pytest.raises(Failed, match=r"^TrainJob has ended \(Failed\)$"):
        acts.run(hour, False)
    assert hour.done.refusals == ["TrainJob has ended (Failed)", "last words"]


def test_destroying_keeps_the_state_drains_mends_and_is_tried_twice(
    hour: Hour, called: list[str]
) -> None:
    _answers(hour, destroy=Output(code=255, out="", err="DependencyViolation"))
    _begin(hour, "destroy")
    with pytest.raises(Failed, match="DependencyViolation"):
        acts.destroy(hour, False)
    twice = ["cancel", "repair", "destroy"]
    assert called == ["drain", *twice, *twice]
    assert leftovers.kept()["deployment"]["resources"] == [{"urn": "a"}]


def test_what_is_left_is_looked_for_by_the_state_before(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftovers.keep({"deployment": {"resources": [{"urn": "a"}]}})

    def found(state: Object, region: str) -> list[str]:
        return [*(each["urn"] for each in state["deployment"]["resources"]), region]

    monkeypatch.setattr(leftovers, "left", found)
    _begin(hour, "left")
    acts.left(hour, False)
    assert hour.proof.left == ["a", "us-east-1"]


def test_a_job_is_waited_for_and_its_last_words_are_kept_though_its_pods_go(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    def body(state: str) -> Object:
        return {"status": {"conditions": [{"type": state, "status": "True"}]}}

    jobs = iter([body("Running"), body("Running"), body("Failed")])
    logs = iter(["first", "last words", ""])

    @contextmanager
    def cluster(*_: Any, **__: Any) -> Iterator[Any]:
        yield SimpleNamespace(login=None, place=None, entries={})

    monkeypatch.setattr(acts, "reached", cluster)
    monkeypatch.setattr(acts, "kubectl_with", lambda *_: None)
    monkeypatch.setattr(acts, "choose", lambda *_: SimpleNamespace(body=next(jobs)))
    monkeypatch.setattr(acts, "_last_lines", lambda *_: next(logs))
    monkeypatch.setattr(acts.time, "sleep", lambda _: None)
    _begin(hour, "run")
    assert acts._await_job(hour) == "last words"  # pyright: ignore[reportPrivateUsage]
