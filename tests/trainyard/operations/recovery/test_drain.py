"""Jobs end on the stack's own cluster, after a list and a question, and what is left is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.terminal import Terminal
from trainyard.operations.reach import place, pulumi
from trainyard.operations.recovery import drain
from trainyard.stores.lustre_updates import FILE_SYSTEM, LINK


def kubeconfig(cluster: str, server: str) -> dict[str, Any]:
    return {
        "current-context": cluster,
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": "me"}}],
        "clusters": [{"name": cluster, "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
    }


OURS, THEIRS = kubeconfig("ours", "https://ours"), kubeconfig("theirs", "https://theirs")
ENVIRONMENT = {"kubeconfig": json.dumps(OURS), "contract": {"cluster": {"name": "ours"}}}
TEAM = {"kubeconfig": json.dumps(OURS), "namespace": "team-a"}
PROVIDER = {
    "type": "pulumi:providers:kubernetes",
    "urn": "urn:pulumi:dev::trainyard::pulumi:providers:kubernetes::cluster",
    "inputs": {"kubeconfig": json.dumps(OURS)},
}
OWN_CLUSTER = {
    "type": "aws:eks/cluster:Cluster",
    "urn": "urn:pulumi:dev::trainyard::eks:index:Cluster$aws:eks/cluster:Cluster::cluster-eksCluster",
    "custom": True,
    "id": "ours",
}
HOME = {
    "type": "aws:efs/fileSystem:FileSystem",
    "urn": "urn:pulumi:dev::trainyard::aws:efs/fileSystem:FileSystem::home",
    "id": "fs-1",
    "protect": True,
}
SERVED = json.dumps({"resources": [{"name": "pytorchjobs"}, {"name": "mpijobs"}]})
"""What the API server has of the training-operator."""
AFTER = "reservation of dev\n"
"""What is printed at the end, of the destroy after it."""
ENDS = "reads jobs in all namespaces of cluster ours, stack dev\n"


def job(space: str, name: str, kind: str = "TrainJob", state: str = "") -> dict[str, Any]:
    conditions = [{"type": "Created", "status": "True"}, {"type": "Failed", "status": "False"}]
    conditions += [{"type": state, "status": "True"}] if state else []
    return {
        "kind": kind,
        "metadata": {"namespace": space, "name": name},
        "status": {"conditions": conditions},
    }


class Machine:
    """The programs kubectl and pulumi, and a cluster with jobs.

    `stays` are names of jobs that do not end; `pods` maps a job to the pods of it that are seen, look
    by look; `refuses` maps a word of a kubectl call to its complaint; `current` is the person's own
    kubeconfig.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *jobs: dict[str, Any],
        outputs: dict[str, Any] = ENVIRONMENT,
        current: dict[str, Any] | None = None,
        stays: tuple[str, ...] = (),
        pods: dict[str, list[list[str]]] | None = None,
        refuses: dict[str, str] | None = None,
        answer: str | None = None,
        resources: tuple[dict[str, Any], ...] = (PROVIDER, OWN_CLUSTER),
        nodes: tuple[str, ...] = (),
        specs: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """`nodes`: of pools of the stack. `specs`: of the pods of jobs."""
        self.nodes, self.specs = nodes, specs or {}
        self.resources = resources
        self.jobs, self.outputs, self.stays = list(jobs), outputs, stays
        self.current, self.refuses, self.pods = current, refuses or {}, pods or {}
        self.calls: list[tuple[str, ...]] = []
        self.ended: list[str] = []
        self.terminal = Terminal(monkeypatch, answer)
        monkeypatch.setattr(subprocess, "run", self.run)
        monkeypatch.setattr(drain, "POLL_SECONDS", 0)
        monkeypatch.setattr(drain, "reservations", lambda stack: [f"reservation of {stack}"])
        monkeypatch.setenv("KUBECONFIG", "of the person")

    def run(self, words: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(tuple(words))
        try:
            said = self._pulumi(words) if words[0] == "pulumi" else self._kubectl(words, how["env"])
        except RuntimeError as error:
            return subprocess.CompletedProcess(words, 1, "", f"{error}\n")
        return subprocess.CompletedProcess(words, 0, said, "")

    def _pulumi(self, words: list[str]) -> str:
        if words[1:3] == ["stack", "export"]:
            return json.dumps({"deployment": {"resources": self.resources}})
        assert words[1:4] == ["stack", "output", "--json"]
        return json.dumps(self.outputs)

    def _kubectl(self, words: list[str], env: dict[str, str]) -> str:
        if "view" in words:
            config = self.current if env["KUBECONFIG"] == "of the person" else OURS
            if not config:
                raise RuntimeError("error: current-context must exist in order to minify")
            return json.dumps(config)
        assert json.loads(Path(env["KUBECONFIG"]).read_text()) == OURS, "only the stack's cluster"
        for word, complaint in self.refuses.items():
            if word in " ".join(words):
                raise RuntimeError(complaint)
        match words:
            case ["kubectl", "get", "--raw=/version", *_]:
                return "{}"
            case ["kubectl", "get", "--raw", "/apis/kubeflow.org/v1", *_]:
                return SERVED
            case ["kubectl", "get", kind, scope, "--output=json", *_]:
                return json.dumps({"items": [*self._found(kind, scope)]})
            case ["kubectl", "get", "pods", scope, selector, "--output=json", *_]:
                return json.dumps({"items": self._pods(scope, selector)})
            case ["kubectl", "delete", kind, name, scope, "--cascade=background", *_]:
                if name in self.stays:
                    raise RuntimeError("timed out waiting for the condition")
                [found] = [it for it in self._found(kind, scope) if it["metadata"]["name"] == name]
                self.jobs.remove(found)
                self.ended.append(f"{scope.partition('=')[2]}/{name}")
                return ""
        raise AssertionError(words)

    def _pods(self, scope: str, selector: str) -> list[dict[str, Any]]:
        space, of = scope.partition("=")[2], selector.rpartition("=")[2]
        seen = self.pods.get(of) or [[]]
        names = seen.pop(0) if len(seen) > 1 else seen[0]
        return [
            {
                "metadata": {"namespace": space, "name": name},
                "spec": self.specs.get(of, {}),
                "status": {"phase": "Succeeded"},
            }
            for name in names
        ]

    def _found(self, kind: str, scope: str) -> list[dict[str, Any]]:
        if (kind, scope) == ("nodes", "--selector=trainyard.io/pool"):
            return [{"metadata": {"name": name}} for name in self.nodes]
        space = scope.partition("=")[2]
        return [
            each
            for each in self.jobs
            if f"{each['kind'].lower()}s" == kind.partition(".")[0]
            and space in ("", each["metadata"]["namespace"])
        ]


JOBS = (
    job("team-a", "llama", state="Suspended"),
    job("team-b", "vit"),
    job("team-a", "old", "PyTorchJob", "Running"),
)


def test_help_and_unknown_words_call_neither_kubectl_nor_pulumi(tmp_path: Path) -> None:
    for name in ("kubectl", "pulumi", "aws", "helm"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/calls\n")
        (tmp_path / name).chmod(0o755)
    for words, code in {("--help",): 0, ("dev", "--yse"): 2, ("dev", "prod"): 2}.items():
        done = subprocess.run(
            [sys.executable, "-m", "trainyard", "drain", *words],
            cwd=CHECKOUT,
            env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
        )
        assert done.returncode == code, words
    assert not (tmp_path / "calls").exists()


def test_every_job_is_listed_with_its_state_and_ended_after_a_yes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, *JOBS, answer="y")
    assert run_word("drain", ["dev"]) == 0
    assert machine.terminal.asked == ["Delete these 3 jobs? [y/N] "]
    assert machine.ended == ["team-a/llama", "team-b/vit", "team-a/old"]
    assert capsys.readouterr().out == (
        f"{ENDS}TrainJob team-a/llama, Suspended\nTrainJob team-b/vit, Created\n"
        "PyTorchJob team-a/old, Running\ndeletes TrainJob team-a/llama\ndeletes TrainJob team-b/vit\n"
        "deletes PyTorchJob team-a/old\nreservation of dev\n"
    )


@pytest.mark.parametrize(
    ("answer", "code", "said"), [("n", 3, "No job was deleted."), (None, 2, "--yes is not given")]
)
def test_without_a_yes_nothing_ends(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str | None,
    code: int,
    said: str,
) -> None:
    machine = Machine(monkeypatch, *JOBS, answer=answer)
    assert run_word("drain", ["dev"]) == code
    assert machine.ended == [] and not [call for call in machine.calls if "delete" in call]
    printed = capsys.readouterr()
    assert "TrainJob team-b/vit" in printed.out and said in printed.out + printed.err


def test_a_machine_says_yes_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, JOBS[0])
    assert run_word("drain", ["dev", "--yes"]) == 0
    assert machine.ended == ["team-a/llama"] and machine.terminal.asked == []


def test_of_a_team_stack_only_the_jobs_in_the_teams_namespace_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, *JOBS, outputs=TEAM)
    assert run_word("drain", ["team-vision", "--yes"]) == 0
    assert machine.ended == ["team-a/llama", "team-a/old"]
    assert "--all-namespaces" not in [word for call in machine.calls for word in call]
    assert "namespace team-a of cluster ours, stack team-vision\n" in capsys.readouterr().out


def _made(kind: str, name: str) -> dict[str, Any]:
    """An object of the cluster, as the state of its stack has it."""
    return {
        "type": kind,
        "urn": f"urn:pulumi:dev::trainyard::{kind}::{name}",
        "custom": True,
        "inputs": {"metadata": {"name": name}},
    }


IN_THEIR_CLUSTER = (
    PROVIDER,
    _made("kubernetes:core/v1:Namespace", "team-a"),
    _made("kubernetes:trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime", "torch-distributed"),
)
"""State of a stack in an existing cluster."""
POOL = {"nodeSelector": {"trainyard.io/pool": "g6e"}}


def test_in_an_existing_cluster_the_jobs_of_others_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The owner of the cluster may have a training-operator of their own, and jobs on their own nodes."""
    theirs = job("research", "bert", "PyTorchJob", "Running")
    machine = Machine(
        monkeypatch,
        JOBS[0],
        theirs,
        resources=IN_THEIR_CLUSTER,
        nodes=("n1",),
        pods={"bert": [["bert-master-0"]]},
        specs={"bert": {"nodeName": "n9"}},
        answer="y",
    )
    assert run_word("drain", ["dev"]) == 0 and machine.ended == ["team-a/llama"]
    assert machine.terminal.asked == ["Delete this job? [y/N] "]
    assert (
        "left alone, in no namespace of the stack and on none of its pools: PyTorchJob research/bert\n"
        in capsys.readouterr().out
    )
    assert run_word("drain", ["dev", "--yes"]) == 0 and machine.ended == ["team-a/llama"]
    assert "no training job of stack dev in" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "of_a_pod"),
    [
        ({}, {"nodeName": "n1"}),
        ({}, POOL),
        ({"pytorchReplicaSpecs": {"Worker": {"template": {"spec": POOL}}}}, None),
        ({"runtimeRef": {"name": "torch-distributed"}}, None),
    ],
    ids=["on a node", "asks in a pod", "asks itself", "on a runtime"],
)
def test_in_an_existing_cluster_a_job_that_the_destroy_would_wait_for_is_deleted(
    spec: dict[str, Any], of_a_pod: dict[str, Any] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = job("research", "bert") | {"spec": spec}
    machine = Machine(
        monkeypatch,
        one,
        resources=IN_THEIR_CLUSTER,
        nodes=("n1",),
        pods={"bert": [[] if of_a_pod is None else ["bert-0"], []]},
        specs={"bert": of_a_pod or {}},
    )
    assert run_word("drain", ["dev", "--yes"]) == 0 and machine.ended == ["research/bert"]


def test_a_runtime_of_the_same_name_in_a_namespace_of_others_is_not_that_of_the_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = {"runtimeRef": {"name": "torch-distributed", "kind": "TrainingRuntime"}}
    one = job("research", "bert") | {"spec": own}
    machine = Machine(monkeypatch, one, resources=IN_THEIR_CLUSTER)
    assert run_word("drain", ["dev", "--yes"]) == 0 and machine.ended == []


@pytest.mark.parametrize(
    ("current", "said"),
    [
        (
            THEIRS,
            "the current context names cluster theirs (https://theirs), which does not change",
        ),
        (OURS, ""),
        (None, ""),
    ],
)
def test_a_current_context_of_another_cluster_is_named_and_not_used(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    current: dict[str, Any] | None,
    said: str,
) -> None:
    machine = Machine(monkeypatch, *JOBS, current=current)
    assert run_word("drain", ["dev", "--yes"]) == 0 and len(machine.ended) == 3
    first = capsys.readouterr().out.splitlines()[0]
    assert first == ENDS.strip() + (f"; {said}" if said else "")


def test_where_there_is_no_job_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch)
    assert run_word("drain", ["dev"]) == 0
    assert machine.terminal.asked == [] and "nothing to delete" in capsys.readouterr().out


@pytest.mark.parametrize("yes", [True, False])
def test_what_the_destroy_after_it_keeps_is_said_to_a_person_and_to_a_program(
    yes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the destroy, to write `data: delete` and to update would make the whole environment anew."""
    Machine(monkeypatch, resources=(PROVIDER, OWN_CLUSTER, HOME))
    assert run_word("drain", ["dev", "--live", *(["--yes"] if yes else [])]) == 0
    said = capsys.readouterr().out
    assert "the destroy keeps FileSystem home fs-1" in said and "reservation of dev" in said
    assert "write `data: delete` at it in Pulumi.dev.yaml and run `pulumi up" in said


@pytest.mark.parametrize("yes", [True, False])
def test_a_store_whose_export_the_destroy_would_cut_off_is_named(
    yes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A teardown that nobody watches loses the same files."""
    goes = {
        "urn": f"urn:pulumi:dev::trainyard::{FILE_SYSTEM}::scratch",
        "type": FILE_SYSTEM,
        "custom": True,
        "id": "fs-2",
        "outputs": {},
    }
    s3 = {"autoExportPolicy": {"events": ["NEW"]}}
    link = {
        "urn": f"urn:pulumi:dev::trainyard::{LINK}::scratch.out",
        "type": LINK,
        "custom": True,
        "id": "dra-1",
        "outputs": {"fileSystemId": "fs-2", "s3": s3},
    }
    Machine(monkeypatch, resources=(PROVIDER, OWN_CLUSTER, goes, link))
    assert run_word("drain", ["dev", "--live", *(["--yes"] if yes else [])]) == 0
    assert (
        "LustreFileSystem scratch fs-2 exports to S3 in the background" in capsys.readouterr().out
    )


def test_a_stack_whose_cluster_is_destroyed_has_no_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The outputs of a stack that keeps data still name its cluster."""
    machine = Machine(monkeypatch, *JOBS, resources=(HOME,))
    assert run_word("drain", ["dev", "--yes"]) == 0 and machine.ended == []
    assert capsys.readouterr().out == "stack dev has no cluster: no job to delete\n"


def test_a_kind_that_the_cluster_does_not_know_has_no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    unserved = {
        "get --raw /apis/kubeflow": "Error from server (NotFound): the server could not find it"
    }
    machine = Machine(monkeypatch, JOBS[0], refuses=unserved)
    assert run_word("drain", ["dev", "--yes"]) == 0 and machine.ended == ["team-a/llama"]
    assert not [call for call in machine.calls if "pytorchjobs" in " ".join(call)]


def test_jobs_of_the_other_kinds_of_the_operator_end_too(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, job("training", "rings", "MPIJob"))
    assert run_word("drain", ["dev", "--yes"]) == 0 and machine.ended == ["training/rings"]


REFUSED = "E1122 06:32:41.1 memcache.go:265] error\nUnable to connect: no such host\n\nSome advice"


def test_the_reason_of_a_cluster_that_does_not_answer_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, refuses={"--raw=/version": REFUSED})
    assert run_word("drain", ["dev", "--yes"]) == 1
    assert capsys.readouterr().err == (
        "cluster ours (https://ours) does not answer: Unable to connect: no such host\n"
        "No job was deleted.\n"
    )


@pytest.mark.parametrize("call", ["--raw=/version", "get pytorchjobs", "get --raw /apis"])
def test_a_cluster_that_does_not_answer_is_no_success_and_nothing_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], call: str
) -> None:
    machine = Machine(monkeypatch, *JOBS, refuses={call: REFUSED})
    assert run_word("drain", ["dev", "--yes"]) == 1
    assert machine.ended == []
    printed = capsys.readouterr()
    assert "Unable to connect" in printed.err and printed.err.endswith("No job was deleted.\n")
    assert "nothing to delete" not in printed.out


def test_a_job_that_does_not_end_keeps_no_other_and_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, *JOBS, stays=("llama",))
    assert run_word("drain", ["dev", "--yes"]) == 1
    assert machine.ended == ["team-b/vit", "team-a/old"]
    said = capsys.readouterr().out
    assert "could not delete TrainJob team-a/llama: timed out waiting for the condition\n" in said
    assert said.endswith(f"not deleted: TrainJob team-a/llama\n{AFTER}")


def test_it_returns_when_the_pods_of_every_job_are_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They may write a checkpoint after their job is gone."""
    pods = {"llama": [["llama-0", "llama-1"], ["llama-1"], ["llama-1"], []], "old": [[]]}
    machine = Machine(monkeypatch, *JOBS, pods=pods)
    assert run_word("drain", ["dev", "--yes"]) == 0 and pods["llama"] == [[]]
    assert capsys.readouterr().out.endswith(
        "deletes PyTorchJob team-a/old\n"
        "waits until these are gone, which go after their jobs: pod team-a/llama-0 (Succeeded), pod"
        " team-a/llama-1 (Succeeded)\n"
        "waits until these are gone, which go after their jobs: pod team-a/llama-1 (Succeeded)\n"
        f"{AFTER}"
    )
    labels = [word for call in machine.calls for word in call if "selector" in word]
    assert "--selector=training.kubeflow.org/job-name=old" in labels


def test_a_pod_that_does_not_end_is_named_and_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, JOBS[0], pods={"llama": [["llama-0"]]})
    monkeypatch.setattr(drain, "PATIENCE_SECONDS", 0.06)
    assert run_word("drain", ["dev", "--yes"]) == 1
    assert (
        "not ended after 0.001 minutes: pod team-a/llama-0 (Succeeded)\n" in capsys.readouterr().out
    )


def test_pods_that_cannot_be_listed_are_no_success_and_the_jobs_are_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, JOBS[0], refuses={"get pods": "connection refused"})
    assert run_word("drain", ["dev", "--yes"]) == 1 and machine.ended == ["team-a/llama"]
    printed = capsys.readouterr()
    assert "No job was deleted" not in printed.out + printed.err
    refused = "cannot list the pods of what was deleted: connection refused\n"
    assert printed.out.endswith(refused + AFTER)


def test_a_job_that_is_sent_meanwhile_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, JOBS[0])
    run = machine.run

    def sends(words: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        if "delete" in words:
            machine.jobs.append(job("team-b", "late"))
        return run(words, **how)

    monkeypatch.setattr(subprocess, "run", sends)
    assert run_word("drain", ["dev", "--yes"]) == 1 and machine.ended == ["team-a/llama"]
    assert capsys.readouterr().out.endswith(f"not deleted: TrainJob team-b/late\n{AFTER}")


def test_a_cluster_that_answers_no_more_after_the_deletions_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, *JOBS, stays=("vit",))
    run = machine.run

    def mute(words: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        if machine.ended:
            machine.refuses = {"get": "connection refused"}
        return run(words, **how)

    monkeypatch.setattr(subprocess, "run", mute)
    assert run_word("drain", ["dev", "--yes"]) == 1
    assert "cannot list kinds of jobs: connection refused" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ({}, "stack dev has no output `kubeconfig`"),
        ({"kubeconfig": json.dumps(OURS)}, "neither the output `contract`"),
        ({"kubeconfig": json.dumps(OURS), "namespace": ""}, "neither the output `contract`"),
        ({**ENVIRONMENT, "kubeconfig": "[secret]"}, "names no cluster"),
        ({**ENVIRONMENT, "kubeconfig": "{"}, "names no cluster"),
        ({**ENVIRONMENT, "kubeconfig": kubeconfig("ours", "")}, "names no cluster"),
    ],
)
def test_outputs_that_do_not_say_where_the_jobs_are_end_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outputs: dict[str, Any],
    said: str,
) -> None:
    machine = Machine(monkeypatch, *JOBS, outputs=outputs)
    assert run_word("drain", ["dev", "--yes"]) == 1
    assert said in capsys.readouterr().err
    assert {call[0] for call in machine.calls} == {"pulumi"}


def test_a_stack_that_pulumi_does_not_know_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, *JOBS)

    def unknown(*_: str) -> None:
        raise pulumi.PulumiError("error: no stack named 'prod' found")

    monkeypatch.setattr(place, "outputs", unknown)
    assert run_word("drain", ["prod", "--yes"]) == 1
    assert capsys.readouterr().err == "error: no stack named 'prod' found\nNo job was deleted.\n"
    assert {call[0] for call in machine.calls} <= {"pulumi"}
