"""The whole thing, as a person does it: one end to end, and one kill. Minutes, not seconds: run by `make
story`."""

from __future__ import annotations

import json
import random
import re
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.aws.identity import ACCOUNT
from rehearsal.aws.images import NEWEST_RELEASE
from tests.support import account_log
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, rehearsing
from trainyard.catalog.versions import KUBERNETES
from trainyard.decide import plan_stack
from trainyard.objects.iam.policies import document
from trainyard.reports.policy import policies
from trainyard.settings.reading.reader import read_file

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]
SPREAD = "-l jobset.sigs.k8s.io/jobset-name=t5-large --namespace training"
LONG = '        run: 2\n        env: {TRAINYARD_STEPS: "10000"}\n'
"""Another run, of 42 minutes: a refresh and a preview do not outlast it."""
SAVED = "checkpoints: {store: scratch, directory: t5-large"
ANSWERED = f"{SAVED}, when_changed: resume"
"""The run before is complete, so that a changed one is refused until somebody says where it begins."""
ZONE, OTHER_ZONE = "    zone: ap-northeast-2a ", "    zone: ap-northeast-2b "
KEPT, DELETED = "        data: keep ", "        data: delete "
POOL, OTHER_POOL = "      h100: {", "      p5: {"
ROLE = "vision-deployer"
LISTED = (
    f"    teams: {{vision: {{deployer: 'arn:aws:iam::{ACCOUNT}:role/{ROLE}',"
    " max_gpus: 16, stores: [scratch]}}\n"
)
TRUST = document(
    {"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": ["sts:AssumeRole"]}
)
KILL_SEED = 3
"""Kills the kubernetes plugin after 14.5 s; `make soak` draws the seed."""
KILLED = ("engine", "aws plugin", "kubernetes plugin")


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    """A world of this module's own, with the dev stack, whose Lustre store is kept. Its first `up`
    lost a process; the second brought up the rest."""
    with rehearsing() as made:
        _edit(made, (DELETED, KEPT))
        _up_that_loses_a_process(made)
        assert made.do("up") == 0, made.log.read_text()
        yield made


def _edit(harness: Harness, *edits: tuple[str, str], stack: str = "dev") -> None:
    file = harness.checkout / f"Pulumi.{stack}.yaml"
    text = file.read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)


def _allowed(entry: str) -> str:
    return f"    allow_replace: [{entry}]\n"


def _held(harness: Harness) -> dict[str, str]:
    """URN → id of everything that the engine believes to exist."""
    deployment = json.loads(harness.shell("pulumi stack export"))["deployment"]
    return {each["urn"]: each.get("id", "") for each in deployment["resources"]}


def _up_that_loses_a_process(harness: Harness) -> None:
    chance = random.Random(KILL_SEED)
    moment, victim = chance.uniform(5, 45), chance.choice(KILLED)
    print(f"seed {KILL_SEED}: kills {victim} after {moment:.1f} s")
    command = harness.start("up")
    time.sleep(moment)
    until(lambda: harness.kill(*VICTIMS[victim]))
    assert command.wait() != 0, "the kill hit nothing"


def test_the_job_is_complete_and_its_sixteen_ranks_met(harness: Harness):
    assert harness.condition("t5-large") == "Complete"
    said = harness.shell(f"kubectl logs {SPREAD} --tail=-1")
    assert {int(r) for r in re.findall(r"\[rank (\d+)/16\] node", said)} == set(range(16))
    env = {
        e["name"]: e.get("value")
        for e in harness.get(f"pods {SPREAD}")["items"][0]["spec"]["containers"][0]["env"]
    }
    assert env["PET_NNODES"] == "2"


def test_both_workers_ran_on_nodes_that_karpenter_launched_from_the_graphs_class(harness: Harness):
    nodes = {pod["spec"]["nodeName"] for pod in harness.get(f"pods {SPREAD}")["items"]}
    assert len(nodes) == 2
    for name in nodes:
        labels = harness.get(f"node {name}")["metadata"]["labels"]
        assert labels["node.kubernetes.io/instance-type"] == "g6e.48xlarge"
        assert labels["topology.kubernetes.io/zone"] == "ap-northeast-2a"
        assert labels["karpenter.k8s.aws/ec2nodeclass"] == labels["karpenter.sh/nodepool"] == "g6e"


def test_status_names_an_idle_pool_whose_type_the_zone_does_not_sell_with_ec2s_words(
    harness: Harness,
):
    """Only p5 and p5e fit such network interfaces: whichever Karpenter tries is refused."""
    elsewhere = "aws ec2 describe-subnets --filters Name=availability-zone,Values=ap-northeast-2b"
    subnet = harness.shell(f"{elsewhere} --query Subnets[0].SubnetId --output text").strip()
    node_class, pool = harness.get("ec2nodeclass h100"), harness.get("nodepool h100")
    node_class["spec"]["subnetSelectorTerms"] = [{"id": subnet}]
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"] = "unsold"
    for made in (pool, node_class):
        del made["status"]
        harness.apply(made | {"metadata": {"name": "unsold"}})
    said = until(
        lambda: re.search(
            r"An idle pool cannot launch nodes: NodePool unsold: NodeClassReady is False\s+Unsupported: Your"
            r" requested instance type \(p5e?.48xlarge\) is not supported in your requested"
            r" Availability Zone \(ap-northeast-2b\)",
            harness.shell(
                f"{sys.executable} -m trainyard status --stack {harness.stack}", check=False
            ),
        ),
        every=3,
    )
    harness.shell(
        "kubectl delete nodepool unsold --wait && kubectl delete ec2nodeclass unsold --wait"
    )
    assert said


def test_a_second_up_a_refresh_and_a_preview_change_nothing(harness: Harness):
    assert harness.do("up") == 0
    assert " 0 changes" in harness.said("up")
    assert "unchanged" in harness.shell(
        "pulumi refresh --yes --skip-preview --non-interactive --expect-no-changes"
    )
    harness.shell("pulumi preview --non-interactive --expect-no-changes")


def test_up_and_a_refresh_ask_the_account_for_nothing_beyond_the_deployers_policy(harness: Harness):
    planned = plan_stack(read_file("dev", harness.checkout)).accepted()
    calls = account_log.asked(harness.state / "logs")
    beyond = calls - account_log.allowed(policies(planned))
    assert len(calls) > 40 and beyond <= {"sts:GetCallerIdentity"}, "which needs no permission"


def test_a_preview_asks_the_policies_of_the_checkout_and_those_that_somebody_configures(
    harness: Harness, tmp_path: Path
):
    assert harness.do("preview") == 0, harness.log.read_text()
    said = harness.said("preview")
    assert re.search(r"trainyard@v0\.1\.0 \(local", said), said
    config = tmp_path / "config.json"
    wanted = {
        "tagged": {"enforcementLevel": "advisory", "required": ["cost-center"]},
        "within-budget": {"max_usd_per_hour": 1},
    }
    config.write_text(json.dumps(wanted))
    said = harness.shell(
        f"pulumi preview --non-interactive --policy-pack policy_pack --policy-pack-config {config}",
        check=False,
    )
    assert "network: must have cost-center among its tags. Fix: set environment.tags" in said
    assert "must leave the pools within 1.00 USD an hour" in said


def test_data_that_is_kept_stops_the_preview_of_another_zone(harness: Harness):
    _edit(harness, (ZONE, OTHER_ZONE))
    assert harness.do("preview") != 0, "it would lose data"
    said = harness.said("preview")
    assert "store scratch is replaced, and the data in it is lost" in said
    assert "write data: delete under environment.storage.scratch and allow_replace" in said
    _edit(harness, (OTHER_ZONE, ZONE))


def test_a_refresh_and_a_preview_while_a_job_runs_change_nothing(harness: Harness):
    """Another run of the same job: controllers write to its objects all the time. The store that was
    kept is no longer protected, and a team is listed."""
    harness.shell(
        f"aws iam create-role --role-name {ROLE} --assume-role-policy-document"
        f" '{json.dumps(TRUST)}'"
    )
    _edit(
        harness,
        ("        shared_memory_gib: 64", f"{LONG}        shared_memory_gib: 64"),
        (SAVED, ANSWERED),
        (KEPT, DELETED),
        (ZONE, LISTED + ZONE),
    )
    command = harness.start("up")
    running = f"kubectl get pods {SPREAD} --field-selector=status.phase=Running --no-headers"
    assert until(
        lambda: (
            " changes" in harness.said("up")
            and harness.shell(running, check=False).count("Running") == 2
        ),
    )  # the engine is done
    harness.shell("pulumi refresh --yes --skip-preview --non-interactive --expect-no-changes")
    harness.shell("pulumi preview --non-interactive --expect-no-changes")
    assert harness.condition("t5-large") == "", "it ran all the while"
    command.send_signal(signal.SIGINT)
    assert command.wait() != 0, harness.log.read_text()
    assert harness.shell(running).count("Running") == 2, "an `up` that is stopped stops no run"
    _edit(harness, (LONG, ""))


def test_another_zone_shows_what_would_be_replaced_where_that_is_allowed(harness: Harness):
    _edit(harness, (ZONE, OTHER_ZONE))
    assert harness.do("preview") != 0, "nothing allows it"
    _edit(harness, (OTHER_ZONE, _allowed("storage.scratch") + OTHER_ZONE))
    assert harness.do("preview") == 0, harness.log.read_text()
    shown = harness.said("preview")
    assert "\nchanges\n" in shown, shown
    replaced = set(re.findall(r"^  replaces `(\w+) ", shown, re.MULTILINE))
    assert replaced == {
        "LustreFileSystem",
        "PersistentVolume",
        "PersistentVolumeClaim",
    }
    assert "\n  new run of `t5-large`: " in shown
    _edit(harness, (_allowed("storage.scratch") + OTHER_ZONE, ZONE))


def test_an_up_that_would_replace_a_pool_changes_nothing_until_that_is_allowed(harness: Harness):
    """The `up` also takes back settings, which starts another run."""
    before = _held(harness)
    _edit(harness, (POOL, OTHER_POOL))
    assert harness.do("up") != 0, "nothing allows it"
    said = harness.said("up")
    assert "must keep the name h100, or pool h100 is replaced" in said
    assert _held(harness) == before and harness.get("nodepool h100")
    _edit(harness, (ZONE, _allowed("pools.h100") + ZONE))
    assert harness.do("up") == 0, harness.log.read_text()
    pools = harness.get("nodepools")["items"]
    assert {pool["metadata"]["name"] for pool in pools} == {"g6e", "p5"}
    assert "this update does not replace pools.h100" in harness.shell(
        "pulumi preview --non-interactive --expect-no-changes"
    )
    _edit(harness, (_allowed("pools.h100") + ZONE, ZONE))
    assert harness.condition("t5-large") == "Complete"


def test_status_says_what_runs_and_that_nothing_is_wrong(harness: Harness):
    assert harness.do("status") == 0, harness.log.read_text()
    said = harness.said("status")
    assert "the rehearsal runs: " in said and re.search(
        r"training/t5-large +t5-large +TrainJob .* Complete", said
    ), said
    assert "\n! " not in said


def test_each_node_is_printed_with_what_it_is(harness: Harness):
    assert harness.tool("nodes") == 0, harness.log.read_text()
    rows = re.findall(
        r"^\S+ +system +m7i\.xlarge +amd64 +\S.* ap-northeast-2\w +[\d.]+ +ready",
        harness.said("nodes"),
        re.M,
    )
    assert len(rows) == 2, harness.said("nodes")


def test_what_the_finished_run_took_is_said_beside_what_was_planned(harness: Harness):
    told = json.loads(harness.shell(f"{sys.executable} -m trainyard spent dev --json"))
    [run] = [run for run in told["runs"] if run["job"] == "t5-large"]
    assert (run["namespace"], run["state"], run["nodes"]) == ("training", "Complete", 2)
    assert run["instance_types"] == ["g6e.48xlarge"]
    # On a slow machine the gang may have started again: a worker fails whose master's node comes a
    # minute later. Which word is said when: tests/trainyard/operations/runs/test_node_time.py.
    assert run["known"] in ("", "at least")
    # The API server counts whole seconds: a run of a fast machine, or the last attempt of a gang
    # that had nothing left to train, takes 0.00 GPU hours. Amounts: tests/trainyard/operations/runs/test_node_time.py.
    for amount in ("gpu_hours", "usd"):
        assert 0 <= float(run[amount]) < 16, f"two nodes for less than an hour: {run}"
    assert [one["namespace"] for one in told["namespaces"]] == ["training"]
    assert harness.tool("spent") == 0
    said = harness.said("spent")
    assert re.search(r"training/t5-large +\S+Z +Complete +2 +g6e.48xlarge", said), said


def test_what_is_due_is_asked_of_the_account(harness: Harness):
    told = harness.shell(f"{sys.executable} -m trainyard due dev --rehearsal --json")
    due = [one["what"] for one in json.loads(told)]
    newest = f"EKS recommends {KUBERNETES['1.35'].ami_patch}-{NEWEST_RELEASE.removeprefix('v')}"
    assert sum(newest in what for what in due) == 2, "of GPU nodes and of system nodes"
    assert not [what for what in due if "failed" in what or "add-on" in what]


def test_plain_tools_work_against_the_rehearsal(harness: Harness):
    assert "ACTIVE" in harness.shell(
        "aws eks describe-cluster --name $(aws eks list-clusters --query 'clusters[0]'"
        " --output text) --query cluster.status --output text"
    )
    assert "karpenter" in harness.shell("helm list --all-namespaces")
    assert "dev" in harness.shell("pulumi stack ls")


def test_a_killed_worker_restarts_the_whole_gang_which_resumes_and_completes(harness: Harness):
    harness.apply(harness.copy_of("t5-large", "resumes", env_TRAINYARD_STEPS="80"))
    assert until(
        lambda: (
            "saved step"
            in harness.shell(
                "kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=resumes --tail=-1",
                check=False,
            )
        ),
    )
    # On a slow machine the gang may have started again before, as in what the finished run took.
    before = harness.get("jobset resumes -n training")["status"].get("restarts", 0)
    worker = harness.get("pods -n training -l jobset.sigs.k8s.io/jobset-name=resumes")["items"][1][
        "metadata"
    ]["name"]
    harness.shell(f"kubectl delete pod {worker} -n training --grace-period=0 --force")
    assert until(lambda: harness.condition("resumes")) == "Complete"
    assert harness.get("jobset resumes -n training")["status"]["restarts"] > before
    assert re.search(
        "resumed from step [1-9]",
        harness.shell(
            "kubectl logs -n training -l jobset.sigs.k8s.io/jobset-name=resumes --tail=-1"
        ),
    )


def test_a_listed_team_trains_with_rights_on_its_namespace_only(harness: Harness):
    """Its role may read its contract, and do nothing else in AWS."""
    own = "    namespace: team-vision\n    max_gpus: 16\n"
    _edit(harness, (own, "    name: vision\n"), stack="team-vision")
    team = plan_stack(read_file("team-vision", harness.checkout), harness.checkout).accepted()
    [policy] = policies(team).values()
    given = f"--role-name {ROLE} --policy-name contract"
    harness.shell(f"aws iam put-role-policy {given} --policy-document '{json.dumps(policy)}'")
    assert harness.do("up", "--stack", "team-vision") == 0, harness.log.read_text()
    assert harness.condition("vit-base", "team-vision") == "Complete"
    harness.shell("pulumi preview --non-interactive --expect-no-changes")
    harness.shell("pulumi stack output kubeconfig --stack team-vision --show-secrets > team.yaml")
    asked = "kubectl --kubeconfig team.yaml auth can-i"
    assert harness.shell(f"{asked} create trainjobs --namespace team-vision").strip() == "yes"
    for elsewhere in ("create trainjobs --namespace training", "get secrets --all-namespaces"):
        assert harness.shell(f"{asked} {elsewhere}", check=False).strip() == "no"
    assert harness.do("down", "--stack", "team-vision") == 0
    harness.shell(f"aws iam delete-role-policy {given} && aws iam delete-role --role-name {ROLE}")
    _edit(harness, ("    name: vision\n", own), stack="team-vision")


@pytest.mark.soak
def test_a_team_that_nobody_lists_comes_and_goes_and_the_environment_does_not_change(
    harness: Harness,
):
    file = harness.checkout / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace(LISTED, ""))
    assert harness.do("up") == 0, harness.log.read_text()
    assert harness.do("up", "--stack", "team-vision") == 0, harness.log.read_text()
    assert harness.condition("vit-base", "team-vision") == "Complete"
    assert harness.do("down", "--stack", "team-vision") == 0
    harness.shell("pulumi preview --non-interactive --expect-no-changes")


def test_down_leaves_nothing(harness: Harness):
    """Though `resumes`, which no stack owns, holds its runtime."""
    assert harness.do("down") == 0, harness.log.read_text()
    assert until(lambda: harness.processes("rehearsal.") == [])
