"""What `trainyard status` prints, from snapshots: every cause is named, and a finished job has no
finding."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.support.launchers import torchrun
from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.noted import WHY, note_of
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.status import status
from trainyard.operations.status.diagnosis import SILENCE, diagnose

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
Object = dict[str, Any]


def _object(kind: str, name: str, age: int = 300, **rest: Any) -> Object:
    created = (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = {
        "name": name,
        "namespace": "training",
        "creationTimestamp": created,
        **rest.pop("metadata", {}),
    }
    return {"kind": kind, "metadata": meta, **rest}


def _job(command: str = "torchrun --rdzv_endpoint=a:1", **status: Any) -> Object:
    return _object(
        "TrainJob",
        "run",
        spec={
            "runtimeRef": {"name": "torch"},
            "trainer": {"numNodes": 2, "command": ["/bin/bash", "-c", command]},
        },
        status=status,
    )


CONTROLLERS = [
    _object("Deployment", name, status={"availableReplicas": 1})
    for name in ("karpenter", "jobset-controller", "kubeflow-trainer-controller-manager")
]
PYTORCH_JOB = _object(
    "PyTorchJob",
    "old",
    status={
        "conditions": [
            {"type": "Created", "status": "True"},
            {"type": "Running", "status": "True", "reason": "r", "message": "m"},
        ]
    },
    spec={
        "pytorchReplicaSpecs": {
            kind: {
                "replicas": n,
                "template": {
                    "spec": {"containers": [{"command": ["torchrun", "--nnodes=4", "a.py"]}]}
                },
            }
            for kind, n in (("Master", 1), ("Worker", 2))
        }
    },
)


def _printed(
    logs: dict[str, str] | None = None,
    ends: dict[str, str] | None = None,
    last_lines_at: dict[str, datetime] | None = None,
    unread: Iterable[str] = (),
    **objects: list[Object],
) -> str:
    all_objects = {"trainjobs": [_job()], "deployments": CONTROLLERS, **objects}
    return "\n".join(
        map(
            str,
            diagnose(
                Snapshot(
                    objects=all_objects,
                    logs=logs or {},
                    ends=ends or {},
                    last_lines_at=last_lines_at or {},
                    unread=frozenset(unread),
                    taken_at=NOW,
                )
            ),
        )
    )


def test_a_running_job_with_its_controllers_is_left_alone():
    assert _printed() == ""


def test_a_complete_job_is_left_alone_whatever_else_is_wrong():
    complete = _job(conditions=[{"type": "Complete", "status": "True"}])
    assert _printed(trainjobs=[complete], deployments=[]) == ""


def test_a_chart_that_is_not_installed_is_named():
    assert "nothing launches nodes" in _printed(deployments=CONTROLLERS[1:])
    assert "nothing starts jobs" in _printed(deployments=CONTROLLERS[:2])


def test_jobs_of_queues_need_kueue_and_the_other_kinds_of_the_operator_need_it():
    queued = _job()
    queued["metadata"] = queued["metadata"] | {"labels": {QUEUE_LABEL: "vision"}}
    text = _printed(trainjobs=[queued])
    assert "nothing admits the jobs of queues" in text
    assert "no Deployment is named kueue-controller-manager" in text
    rings = {"mpiReplicaSpecs": PYTORCH_JOB["spec"]["pytorchReplicaSpecs"]}
    text = _printed(trainjobs=[], mpijobs=[_object("MPIJob", "rings", spec=rings)])
    assert "no Deployment is named training-operator" in text


def test_a_controller_that_does_not_run_is_named_with_its_pod_and_the_reason():
    waiting = {"reason": "ImagePullBackOff", "message": 'image "kueue:1" not found'}
    pod = {
        "metadata": {"name": "karpenter-7x", "namespace": "training", "labels": {"app": "k"}},
        "spec": {"nodeName": "n1", "containers": []},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"name": "controller", "state": {"waiting": waiting}}],
        },
    }
    away = _object("Deployment", "karpenter", status={})
    away["metadata"]["namespace"] = "training"
    away["spec"] = {"selector": {"matchLabels": {"app": "k"}}}
    said = _printed(deployments=[away, *CONTROLLERS[1:]], pods=[pod])
    assert (
        "Deployment karpenter has no available pod: pod karpenter-7x: the image cannot be pulled: kueue:1"
        " does not exist"
    ) in said


def test_kinds_that_nobody_serves_name_their_release():
    snapshot = Snapshot(objects={}, unserved=frozenset({"trainjobs", "nodepools"}))
    text = "\n".join(map(str, diagnose(snapshot)))
    assert "release kubeflow-trainer-crds is not installed" in text
    assert "release karpenter-crd is not installed" in text


def test_a_role_that_is_too_narrow_is_named_from_the_controllers_log():
    log = (
        "jobsets.jobset.x-k8s.io is forbidden: User"
        ' \\"system:serviceaccount:kubeflow-system:trainer\\" cannot create resource \\"jobsets\\"'
        " in API group"
    )
    text = _printed(logs={"kubeflow-system/trainer": log})
    assert "system:serviceaccount:kubeflow-system:trainer cannot create jobsets" in text
    assert "its Role is too narrow" in text


def test_a_call_that_aws_refuses_is_named_once():
    log = (
        "UnauthorizedOperation: you are not authorized\nUnauthorizedOperation: you are not"
        " authorized"
    )
    assert _printed(logs={"kube-system/karpenter": log}).count("AWS refused a call") == 1


def test_a_condition_of_the_node_class_that_is_false_is_named():
    broken = _object(
        "EC2NodeClass",
        "gpu",
        status={
            "conditions": [{"type": "SubnetsReady", "status": "False", "message": "no subnet"}]
        },
    )
    assert "SubnetsReady is False" in _printed(ec2nodeclasses=[broken])


def pool(name: str) -> Object:
    """A NodePool whose class was tried with a type that its zone does not sell."""
    conditions = [
        {"type": "NodeClassReady", "status": "False", "message": "Node Class Readiness Unknown"}
    ]
    labels = {"trainyard.io/pool": name}
    return _object(
        "NodePool",
        name,
        spec={
            "template": {
                "metadata": {"labels": labels},
                "spec": {"nodeClassRef": {"name": f"{name}-class"}},
            }
        },
        status={"conditions": conditions},
    )


def _pod_on(pool: str) -> Object:
    labels = {"jobset.sigs.k8s.io/jobset-name": "run"}
    return _object(
        "Pod",
        "run-0",
        age=1,
        metadata={"labels": labels},
        spec={"nodeSelector": {"trainyard.io/pool": pool}, "containers": []},
        status={"phase": "Pending"},
    )


def test_a_pool_that_can_give_no_nodes_stands_in_the_way_of_its_own_jobs_only():
    broken = [pool("h100")]
    text = _printed(pods=[_pod_on("h100")], nodepools=broken)
    assert "NodePool h100: NodeClassReady is False" in text
    assert _printed(pods=[_pod_on("g6e")], nodepools=broken) == ""
    assert "NodePool h100" in _printed(nodepools=broken), "a job without pods may need any pool"


@pytest.mark.parametrize(
    "state, words",
    [
        ({}, "is not launched"),
        ({"Launched": "True"}, "needs an access entry"),
        ({"Launched": "True", "Registered": "True"}, "device plugin is missing"),
    ],
)
def test_a_node_that_does_not_come_names_the_step_it_hangs_at(state: dict[str, str], words: str):
    every = {"Launched": "Unknown", "Registered": "Unknown", "Initialized": "Unknown", **state}
    claim = _object(
        "NodeClaim",
        "gpu-x",
        status={
            "conditions": [
                {"type": kind, "status": status, "message": ""} for kind, status in every.items()
            ]
        },
    )
    assert words in _printed(nodeclaims=[claim])


def test_a_node_claim_that_is_just_created_has_no_finding():
    assert _printed(nodeclaims=[_object("NodeClaim", "gpu-x", age=5)]) == ""


def test_a_command_without_a_rendezvous_endpoint_is_named_also_when_its_line_continues():
    assert "must give torchrun a rendezvous endpoint" in _printed(
        trainjobs=[_job("torchrun \\\n --rdzv_backend=c10d a.py")]
    )
    assert _printed(trainjobs=[_job("torchrun --nproc_per_node=8 a.py")]) == "", (
        "it goes by PET_MASTER_ADDR"
    )


def test_a_failed_job_says_the_reason_and_its_last_words():
    failed = _job(
        conditions=[
            {"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "m"}
        ]
    )
    text = _printed(
        trainjobs=[failed],
        pods=[_pod("run-node-0-0-x", phase="Failed", node="n1")],
        logs={"training/run-node-0-0-x": "a\nboom"},
    )
    assert "ReachedMaxRestarts" in text
    assert "\n    boom\n" in text


def test_an_event_about_nothing_that_has_a_name_is_no_obstacle():
    assert _printed(events=[_object("Event", "e", involvedObject={}, message="hello")]) == ""


def _pod(
    name: str, node: str | None = None, age: int = 300, phase: str = "Pending", **container: Any
) -> Object:
    return _object(
        "Pod",
        name,
        age,
        metadata={"labels": {"jobset.sigs.k8s.io/jobset-name": "run"}},
        spec={"containers": [{"name": "node"}], **({"nodeName": node} if node else {})},
        status={
            "phase": phase,
            "containerStatuses": [{"name": "node", "state": {}} | container],
        },
    )


def _node(region: str, **labels: str) -> Object:
    return _object(
        "Node",
        "n1",
        metadata={
            "labels": {
                "node.kubernetes.io/instance-type": "g6e.48xlarge",
                "topology.kubernetes.io/region": region,
                "karpenter.sh/capacity-type": "on-demand",
                **labels,
            }
        },
    )


def _event(
    about: str,
    message: str,
    kind: str = "Pod",
    by: str = "default-scheduler",
    at: str = "1",
    **rest: Any,
) -> Object:
    return _object(
        "Event",
        f"e-{at}",
        involvedObject={"name": about, "kind": kind},
        type="Warning",
        message=message,
        source={"component": by},
        lastTimestamp=at,
        **rest,
    )


def test_commands_about_pools_and_controllers_name_the_stack_of_the_environment():
    """Without --stack they mean dev, or nothing in a folder of many stacks."""
    quota = _event("run-node-0-0-x", "VcpuLimitExceeded: You have requested more", by="karpenter")
    claim = _object("NodeClaim", "g6e-1", status={"conditions": []})
    objects = {
        "trainjobs": [_job()],
        "pods": [_pod("run-node-0-0-x")],
        "events": [quota, _event("role", "UnauthorizedOperation: no", "Node")],
        "nodeclaims": [
            claim | {"status": {"conditions": [{"type": "Launched", "status": "True"}]}}
        ],
    }
    for stack, option in (("prod", " --stack prod"), ("", "")):
        found = diagnose(Snapshot(objects=objects, taken_at=NOW, stack="team", environment=stack))
        text = "\n".join(map(str, found))
        assert f"run pulumi up{option}, and check" in text
        assert f"`trainyard plan{option}` prints" in text and f"check --live{option}` the" in text
        assert f"trainyard drift{option}, which" in text
        assert f"pulumi refresh{option}, which names what is gone, and pulumi up{option};" in text


def test_a_pod_that_nothing_places_says_what_the_scheduler_says():
    assert "0/2 nodes" in _printed(
        pods=[_pod("run-node-0-0-x")], events=[_event("run-node-0-0-x", "0/2 nodes")]
    )


@pytest.mark.parametrize(
    ("labels", "prices", "cost"),
    [
        ({}, LIST, "30.13 USD an hour"),
        ({}, OwnPrices(discount_percent=Decimal(20)), "24.10 USD an hour"),
        ({"karpenter.sh/capacity-type": "spot"}, LIST, "their price is not known"),
        (
            {
                "karpenter.sh/capacity-type": "reserved",
                "karpenter.k8s.aws/capacity-reservation-type": "capacity-block",
            },
            LIST,
            "their price is not known",
        ),
    ],
    ids=["on demand", "with a discount", "Spot", "a Capacity Block"],
)
def test_nodes_cost_what_nodes_and_watch_say(labels: dict[str, str], prices: OwnPrices, cost: str):
    objects = {
        "trainjobs": [_job()],
        "deployments": CONTROLLERS,
        "nodes": [_node("us-east-1", **labels)],
        "pods": [_pod("run-node-0-0-x", node="n1", phase="Running"), _pod("run-node-0-1-x")],
    }
    found = diagnose(Snapshot(objects=objects, taken_at=NOW, prices=prices))
    assert f"; it has 1 idle, {cost}\n" in "\n".join(map(str, found))


def test_a_gang_that_has_waited_since_another_day_says_the_day():
    waits = _pod("run-node-0-1-x", age=86_400)
    assert "for 1 of 1 nodes since 2026-11-20 12:00:00 (86400 s)" in _printed(pods=[waits])


def test_a_pod_that_hangs_on_its_node_says_so():
    text = _printed(
        pods=[_pod("run-node-0-0-x", node="n1")], events=[_event("run-node-0-0-x", "cannot mount")]
    )
    assert "run-node-0-0-x has been Pending for 300 s" in text and "cannot mount" in text


def test_half_a_gang_is_named_with_its_missing_nodes_its_time_and_its_cost():
    pods = [_pod("run-node-0-0-x", node="n1", phase="Running"), _pod("run-node-0-1-x", age=130)]
    text = _printed(pods=pods, nodes=[_node("us-east-1")])
    assert "TrainJob run has waited for 1 of 2 nodes since 11:57:50 (130 s)" in text
    assert "; it has 1 idle, 30.13 USD an hour" in text
    assert "it has 1 idle, their price is not known" in _printed(
        pods=pods, nodes=[_node("ap-northeast-3")]
    ), "never a neighbour's price"


def test_what_karpenter_says_of_capacity_comes_before_what_the_scheduler_says():
    events = [
        _event("run-node-0-1-x", "0/2 nodes", at="2027-01-01T00:00:03Z"),
        _event(
            "g6e-abc",
            "all requested instance types were unavailable",
            "NodeClaim",
            "karpenter",
            "2027-01-01T00:00:01Z",
            reason="InsufficientCapacityError",
        ),
        _event(
            "run-node-0-1-x",
            "no instance type met",
            by="karpenter",
            at="2027-01-01T00:00:02Z",
            reason="FailedScheduling",
        ),
    ]
    text = _printed(pods=[_pod("run-node-0-0-x"), _pod("run-node-0-1-x")], events=events)
    assert "waited for 2 of 2 nodes" in text and "instance types were unavailable" in text
    assert "no instance type met" in _printed(
        pods=[_pod("run-node-0-1-x")], events=[events[0], events[2]]
    )


def test_a_gang_that_is_just_created_has_no_finding():
    assert (
        _printed(
            pods=[_pod("run-node-0-0-x", node="n1", phase="Running"), _pod("run-node-0-1-x", age=5)]
        )
        == ""
    )


def test_what_crashes_says_how_often_with_which_code_and_its_last_words():
    end = {"terminated": {"exitCode": 127, "reason": "Error"}}
    looping = _pod("run-node-0-0-x", node="n1", phase="Running", restartCount=4, lastState=end)
    text = _printed(
        pods=[looping], logs={"training/run-node-0-0-x": "bash: torchrunn: command not found"}
    )
    assert "TrainJob run keeps crashing: 4 restarts" in text
    assert (
        "\n    node rank 0 on n1 ended first, with exit code 127: bash: torchrunn: command not found (the"
        " image has no program torchrunn)\n"
    ) in text


def test_a_failed_job_says_the_line_before_the_summary_of_its_launcher():
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "r", "message": "m"}])
    end = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-21T11:59:00Z"}}
    late = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-21T11:59:09Z"}}
    pods = [
        _pod("run-node-0-0-x", node="n1", phase="Failed", state=late),
        _pod("run-node-0-1-x", node="n2", phase="Failed", state=end),
    ]
    pods[1]["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = "1"
    argument = "train.py: error: unrecognized arguments: --learning-rate 0.02"
    ends = {"training/run-node-0-1-x": f"usage: train.py\n{argument}\n{torchrun('2', '0')}"}
    text = _printed(trainjobs=[failed], pods=pods, ends=ends)
    assert (
        f"\n    node rank 1 on n2 ended first, with exit code 1: {argument} (the script does not take an"
        " argument as it is written)\n    → correct torchrun.arguments or arguments of the job; to start"
    ) in text


@pytest.mark.parametrize(
    ("error", "named"),
    [
        ("ModuleNotFoundError: No module named 'einops'", False),
        ("ValueError: a sample that no row of known failures has", False),
        ("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: no", True),
    ],
)
def test_ranks_that_lose_one_with_an_error_of_its_own_have_no_cause_in_the_network(
    error: str, named: bool
) -> None:
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "r", "message": "m"}])
    pods = [
        _pod(
            f"run-node-0-{rank}-x",
            node=f"n{rank}",
            phase="Failed",
            state={"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": at}},
        )
        for rank, at in ((0, "2026-07-28T10:00:09Z"), (1, "2026-07-28T10:00:01Z"))
    ]
    lost = "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: it has closed"
    ends = {
        "training/run-node-0-1-x": f"Traceback (most recent call last):\n{error}\n",
        "training/run-node-0-0-x": f"Traceback (most recent call last):\n{lost}\n",
    }
    text = _printed(trainjobs=[failed], pods=pods, ends=ends, logs=ends)
    assert error in text and ("its ranks cannot connect" in text) == named


@pytest.mark.parametrize(
    ("node", "phase", "named"),
    [(None, "Pending", False), ("n2", "Pending", False), ("n2", "Running", True)],
)
def test_ranks_that_miss_one_that_has_not_begun_have_no_cause_in_the_network(
    node: str | None, phase: str, named: bool
) -> None:
    pods = [
        _pod("run-node-0-0-x", node=node, phase=phase),
        _pod("run-node-0-1-x", node="n1", phase="Running"),
    ]
    logs = {"training/run-node-0-1-x": "socket.gaierror: [Errno -2] Name or service not known"}
    text = _printed(pods=pods, logs=logs)
    assert ("DNS does not know the endpoint" in text) == named
    assert named or "run-node-0-0-x has been Pending" in text or "has waited for 1 of 2" in text


def test_a_failed_job_whose_pods_are_gone_names_the_ways_to_have_a_log_next_time():
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "r", "message": "m"}])
    text = _printed(trainjobs=[failed], pods=[])
    assert "\n    no log tells why\n    → no log tells why. A log" not in text
    assert (
        "\n    no log tells why\n    → a log goes with its pod. Pods of a runtime of own_runtimes"
        in text
    )


def test_a_failed_job_whose_pods_are_gone_has_the_reason_that_an_update_has_noted() -> None:
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "r", "message": "m"}])
    known = Cause("node rank 0 on n1 ended: ValueError: no such column", "mend the script")
    failed["metadata"]["annotations"] = {WHY: note_of(known)}
    text = _printed(trainjobs=[failed], pods=[])
    assert f"\n    {known.sentence}\n    → mend the script; correct its entry" in text
    assert "no log tells why" not in text


def test_pods_that_are_there_and_tell_nothing_hide_no_reason_that_an_update_has_noted() -> None:
    """Such as those that wait for a master which is gone."""
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "r", "message": "m"}])
    known = Cause("node rank 0 on n1 ended: ValueError: no such column", "mend the script")
    failed["metadata"]["annotations"] = {WHY: note_of(known)}
    end = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-21T11:59:00Z"}}
    left = _pod("run-node-0-1-x", node="n2", phase="Failed", state=end)
    text = _printed(trainjobs=[failed], pods=[left])
    assert f"\n    {known.sentence}\n    → mend the script; correct its entry" in text


@pytest.mark.parametrize("minutes", [1, 60])
def test_a_job_that_has_just_begun_again_has_the_reason_that_an_update_has_noted(
    minutes: int,
) -> None:
    pods = [_pod("run-node-0-0-x", node="n1", phase="Running")]
    job, known = _job(), Cause("node rank 0 ended: unrecognized arguments: --stepz", "correct it")
    note = json.loads(note_of(known))
    note["at"] = (NOW - timedelta(minutes=minutes)).isoformat()
    job["metadata"]["annotations"] = {WHY: json.dumps(note)}
    sets = [{"metadata": {"name": "run", "namespace": "training"}, "status": {"restarts": 2}}]
    text = _printed(trainjobs=[job], pods=pods, jobsets=sets)
    assert (f"TrainJob run has begun again: 2 restarts\n    {known.sentence}" in text) == (
        minutes == 1
    )


def test_a_full_file_system_is_named_from_the_log_of_whichever_rank_says_so():
    pods = [_pod(f"run-node-0-{n}-x", node="n1", phase="Running", restartCount=2) for n in range(2)]
    logs = {
        "training/run-node-0-0-x": "[rank 1/4] Lost: rank 0 was lost",
        "training/run-node-0-1-x": "[rank 0/4] OSError: [Errno 28] No space left on device\nbye",
    }
    text = _printed(pods=pods, logs=logs)
    assert "OSError: [Errno 28] No space left on device (a file system is full)" in text
    assert "→ delete old checkpoints, or raise capacity_gib of the store" in text


@pytest.mark.parametrize("where", ["state", "lastState"])
def test_a_rank_that_the_kernel_killed_for_memory_is_named_with_the_setting_that_helps(where: str):
    end: Any = {where: {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "r", "message": "m"}])
    pod = _pod("run-node-0-0-x", node="n1", phase="Failed", **end)
    text = _printed(trainjobs=[failed], pods=[pod])
    assert "its pods have too little memory: the kernel killed a rank (OOMKilled)" in text
    assert "→ raise memory_gib of the job" in text and "trainyard again run" in text


@pytest.mark.parametrize("times, named", [(3, True), (1, False)])
def test_a_gang_that_starts_anew_again_and_again_is_named_and_one_that_lost_a_node_is_not(
    times: int, named: bool
):
    text = _printed(jobsets=[_object("JobSet", "run", status={"restarts": times})])
    assert ("TrainJob run keeps crashing: 3 restarts" in text) == named


def test_a_job_whose_pods_are_refused_says_by_what():
    refused = _event(
        "run-node-0", 'violates PodSecurity "baseline:latest"', "Job", reason="FailedCreate"
    )
    assert (
        'the pods of run-node-0 cannot be created\n    violates PodSecurity "baseline'
        in _printed(events=[refused])
    )
    assert (
        _printed(events=[refused], pods=[_pod("run-node-0-0-x", node="n1", phase="Running")]) == ""
    ), "it has some now"


@pytest.mark.parametrize("nodes, named", [("=3", True), (" 2", False), ("=1:3", False)])
def test_a_torchrun_that_waits_for_another_number_of_nodes_is_named(nodes: str, named: bool):
    text = _printed(trainjobs=[_job(f"torchrun --nnodes{nodes} a.py")])
    assert ("must start the job's 2 nodes\n    it has --nnodes=3" in text) == named


def test_a_program_that_no_launcher_starts_is_named_also_on_a_runtime_of_the_cluster():
    runtime = {
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"torch": {}}},
    }
    text = _printed(trainjobs=[_job("python train.py")], clustertrainingruntimes=[runtime])
    assert "`python train.py` starts without torchrun on 2 nodes" in text
    assert "→ start it with torchrun" in text


def test_a_hung_job_is_named_with_its_time_its_cost_and_the_pod_that_stopped_first():
    def silent(*times: timedelta) -> str:
        pods = [_pod(f"run-node-0-{n}-x", node="n1", phase="Running") for n in range(len(times))]
        times_of_pods = {f"training/run-node-0-{n}-x": NOW - time for n, time in enumerate(times)}
        return _printed(pods=pods, last_lines_at=times_of_pods, nodes=[_node("us-east-1")])

    text = silent(SILENCE, timedelta(minutes=7))
    assert "none has written a log line since 11:55:00 (300 s); 30.13 USD an hour" in text
    assert "pod run-node-0-1-x stopped first, at 11:53:00, on node n1: look there first" in text
    assert silent(timedelta(minutes=4), timedelta(hours=2)) == "", "one of them still speaks"


def test_a_job_whose_node_does_not_answer_is_not_said_to_be_silent():
    pods = [_pod(f"run-node-0-{n}-x", node=f"n{n}", phase="Running") for n in range(2)]
    spoke = {"training/run-node-0-0-x": NOW - 2 * SILENCE}
    text = _printed(pods=pods, last_lines_at=spoke, unread=["training/run-node-0-1-x"])
    assert "cannot be read: the kubelet of n1 does not answer" in text and "hang" not in text
    assert "→ kubectl describe node n1" in text


def test_a_job_that_is_silent_from_its_start_is_named_by_when_its_containers_started():
    def silent(age: timedelta, last_lines_at: dict[str, datetime] | None = None) -> str:
        pods = [_pod(f"run-node-0-{n}-x", node="n1", phase="Running") for n in range(2)]
        for pod in pods:
            running = {"startedAt": (NOW - age).isoformat()}
            pod["status"]["containerStatuses"] = [{"name": "node", "state": {"running": running}}]
            pod["status"]["initContainerStatuses"] = [{"name": "a", "state": {"terminated": {}}}]
        return _printed(pods=pods, last_lines_at=last_lines_at, nodes=[_node("us-east-1")])

    text = silent(SILENCE)
    assert "none has written a log line since they started at 11:55:00 (300 s)" in text
    assert "no rank has written anything" in text
    assert silent(timedelta(minutes=4)) == "", "it has just started"
    one = {"training/run-node-0-0-x": NOW - timedelta(minutes=6)}
    assert "pod run-node-0-1-x stopped first, at 11:53:00" in silent(timedelta(minutes=7), one)
    one = {"training/run-node-0-0-x": NOW}
    assert silent(timedelta(hours=1), one) == "", "only one rank writes, and it does"


def test_a_worker_that_waits_for_its_master_is_named_after_what_keeps_the_master():
    def pod(role: str, **status: Any) -> Object:
        labels = {
            f"training.kubeflow.org/{key}": value
            for key, value in {
                "job-name": "old",
                "replica-type": role,
                "replica-index": "0",
            }.items()
        }
        return _object(
            "Pod",
            f"old-{role}-0",
            metadata={"labels": labels},
            spec={"nodeName": "n1"},
            status={"phase": "Pending", **status},
        )

    pods = [
        pod("worker", initContainerStatuses=[{"name": "init-pytorch", "state": {"running": {}}}]),
        pod(
            "master",
            containerStatuses=[
                {"state": {"waiting": {"reason": "InvalidImageName", "message": "A"}}}
            ],
        ),
    ]
    text = _printed(trainjobs=[], pytorchjobs=[PYTORCH_JOB], pods=pods)
    assert text.index("pod old-master-0 has been Pending") < text.index(
        "pod old-worker-0 has been Pending"
    )
    assert "init-pytorch waits until DNS knows the master" in text
    assert [*map(status._rank, pods)] == ["worker 0", "master 0"]


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_pods_that_a_run_has_left_behind_are_named_with_what_they_cost(state: str):
    def printed(phase: str, seconds: int) -> str:
        ended = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        job = PYTORCH_JOB | {
            "status": {
                "conditions": [{"type": state, "status": "True", "lastTransitionTime": ended}]
            }
        }
        pod = _object(
            "Pod",
            "old-worker-0",
            metadata={"labels": {"training.kubeflow.org/job-name": "old"}},
            spec={"nodeName": "n1"},
            status={"phase": phase},
        )
        return _printed(trainjobs=[], pytorchjobs=[job], pods=[pod], nodes=[_node("us-east-1")])

    left = "PyTorchJob old ended 60 s ago, and its pods have not: old-worker-0; 30.13 USD an hour"
    assert left in printed("Running", 60) and left in printed("Pending", 60)
    assert "old-worker-0 has been Pending" not in printed("Pending", 60), "nobody waits for it"
    assert left not in printed("Succeeded", 60) and "ended" not in printed("Running", 5)


def test_a_pytorch_job_whose_failed_pods_are_deleted_crashes_too():
    restarts = [
        _event(
            "old",
            "job old is restarting because Worker replica(s) failed.",
            "PyTorchJob",
            at=str(at),
            reason="PyTorchJobRestarting",
            count=2,
        )
        for at in range(2)
    ]
    last = _event(
        "old",
        "Pod: training.old-worker-0 exited with code 139",
        "PyTorchJob",
        reason="ExitedWithCode",
    )
    text = _printed(trainjobs=[], pytorchjobs=[PYTORCH_JOB], events=[*restarts, last])
    assert (
        "PyTorchJob old keeps crashing: 4 restarts\n    node rank 1 ended first, with exit code 139: a"
        " library in C crashed\n"
    ) in text
    assert "logs: {} under environment keeps all logs" in text, "the log went with its pod"
    assert "with --previous for the run before" in text


def test_a_pytorch_job_whose_pods_are_refused_says_by_what():
    refused = _event(
        "old",
        'Error creating: pods "old-master-0" is forbidden: exceeded quota',
        "PyTorchJob",
        reason="FailedCreatePod",
    )
    assert "the pods of old cannot be created\n    Error creating" in _printed(
        pytorchjobs=[PYTORCH_JOB], events=[refused]
    )


def test_events_of_one_job_tell_nothing_of_others_whose_names_begin_like_it_or_are_the_same():
    refused = _event("run-big-node-0", "exceeded quota", "Job", reason="FailedCreate")
    big = _job()
    big["metadata"] = big["metadata"] | {"name": "run-big"}
    placed = _pod("run-big-node-0-0-x", node="n1", phase="Running")
    placed["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-name": "run-big"}
    assert "cannot be created" not in _printed(
        trainjobs=[_job(), big], events=[refused], pods=[placed]
    )
    other = _event(
        "old",
        "Pod: team-a.old-worker-0 exited with code 139",
        "PyTorchJob",
        reason="ExitedWithCode",
    )
    restarts = _event(
        "old", "old is restarting", "PyTorchJob", reason="PyTorchJobRestarting", count=5
    )
    for event in (other, restarts):
        event["metadata"]["namespace"] = "team-a"
    text = _printed(trainjobs=[], pytorchjobs=[PYTORCH_JOB], events=[other, restarts])
    assert "keeps crashing" not in text and "exit code 139" not in text


def test_a_pytorch_job_is_diagnosed_like_a_train_job():
    text = _printed(trainjobs=[], pytorchjobs=[PYTORCH_JOB])
    assert "no Deployment is named training-operator" in text
    assert "must start the job's 3 nodes\n    it has --nnodes=4" in text
    [job] = Snapshot(objects={"pytorchjobs": [PYTORCH_JOB]}).jobs()
    assert (job.nodes, job.state, job.selector) == (
        3,
        "Running",
        "training.kubeflow.org/job-name=old",
    )
