"""Ways round a queue at a real API server: each is refused, and passes when the rule that refuses it is
taken away.

Attacks of one sort have one number, such as A12, here and in test_team_attacks.py. Kueue does not run
here: a job that says itself that it waits is like one that Kueue's webhook has suspended.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.kube import Api, ApiError, Object
from tests.support.patience import until
from tests.support.team_server import (
    PREFIX,
    As,
    TeamServer,
    environment_with_queues,
    refusal,
    team_server,
    without_rule,
)
from trainyard.objects.queues.queues import CONTROLLER, NAMESPACE, QUEUE_LABEL, URGENCY_LABEL
from trainyard.objects.teams.queue_admission import (
    DELETION_POLICY,
    IN_USE,
    RULES,
    RUNTIME_RULES,
    WHOLE,
)
from trainyard.objects.teams.team_admission import RULES as TEAM_RULES
from trainyard.objects.teams.teams import IMAGE_PREFIXES

KUEUE = f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"
SERVICE_ACCOUNTS = "system:serviceaccounts:team-vision"
MERGE = "application/merge-patch+json"
VERSIONS = {"TrainJob": "trainer.kubeflow.org/v1alpha1", "PyTorchJob": "kubeflow.org/v1"}
WAITS: dict[str, Object] = {
    "TrainJob": {"suspend": True},
    "PyTorchJob": {"runPolicy": {"suspend": True, "cleanPodPolicy": "Running"}},
}
RUNS: dict[str, Object] = {
    "TrainJob": {"suspend": False},
    "PyTorchJob": {"runPolicy": {"suspend": False, "cleanPodPolicy": "Running"}},
}
"""Kind → the part of its spec that makes it wait, or start."""


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("queues"), environment_with_queues) as made:
        yield made


def job(
    kind: str = "TrainJob", *, queue: str = "vision", name: str = "j", **metadata: Any
) -> Object:
    """A waiting job in a queue. `metadata`: labels beside the queue's, or owners."""
    labels = {QUEUE_LABEL: queue} | metadata.pop("labels", {})
    container = {"name": "pytorch", "image": f"{PREFIX}a:1"}
    about = {
        "TrainJob": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"image": f"{PREFIX}a:1", "numNodes": 1},
        },
        "PyTorchJob": {
            "pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [container]}}}}
        },
    }[kind]
    return {
        "apiVersion": VERSIONS[kind],
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team-vision",
            "labels": {key: value for key, value in labels.items() if value},
            **metadata,
        },
        "spec": {**about, **WAITS[kind]},
    }


def running(kind: str, **metadata: Any) -> Object:
    made = job(kind, **metadata)
    return made | {"spec": made["spec"] | RUNS[kind]}


def ending(clean_pods: str | None, **metadata: Any) -> Object:
    """A waiting PyTorchJob that says what becomes of its pods when it ends."""
    made = job("PyTorchJob", **metadata)
    made["spec"]["runPolicy"] = {"suspend": True, "cleanPodPolicy": clean_pods}
    return made


def urged(urgency: str | None, **metadata: Any) -> Object:
    """A waiting PyTorchJob that names a PriorityClass of the cluster, beside an urgency or without one."""
    made = job("PyTorchJob", labels={URGENCY_LABEL: urgency}, **metadata)
    policy = {"schedulingPolicy": {"priorityClass": "system-node-critical"}}
    made["spec"]["runPolicy"] = WAITS["PyTorchJob"]["runPolicy"] | policy
    return made


def path(kind: str, name: str = "") -> str:
    return f"/apis/{VERSIONS[kind]}/namespaces/team-vision/{kind.lower()}s{name and f'/{name}'}"


def made(teams: TeamServer, body: Object, by: str = "member") -> str:
    """Why the object is refused; empty where it is not."""
    return refusal(_of(teams, by), "POST", path(body["kind"]), body)


def changed(teams: TeamServer, kind: str, name: str, part: Object, by: str = "member") -> str:
    """Why a change of a job is refused; empty where it is not."""
    try:
        patch(teams, kind, f"{name}?dryRun=All", part, by)
    except ApiError as error:
        assert error.code == 403, error
        return str(error)
    return ""


def patch(teams: TeamServer, kind: str, name: str, part: Object, by: str) -> None:
    _of(teams, by).request("PATCH", path(kind, name), part, content_type=MERGE)


def _of(teams: TeamServer, who: str) -> Api:
    return As(teams.server, KUEUE, "system:masters") if who == "kueue" else teams.of(who)


KEEP = "x.io/keep"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "1", "controller": True}
REFUSED: dict[str, tuple[str, Object]] = {
    "A12 the queue of another team": ("queue", job(queue="nlp")),
    "A12 the queue of another team, for a PyTorchJob": ("queue", job("PyTorchJob", queue="nlp")),
    "A13 no queue": ("queue", job(queue="")),
    "A13 no queue, for a PyTorchJob": ("queue", job("PyTorchJob", queue="")),
    "A14 a job that starts itself": ("start", running("TrainJob")),
    "A14 a PyTorchJob that starts itself": ("start", running("PyTorchJob")),
    "A15 a part of a queued job": ("owner", job(ownerReferences=[OWNER])),
    "A15 a PyTorchJob as a part of a queued job": (
        "owner",
        job("PyTorchJob", ownerReferences=[OWNER]),
    ),
    "A16 an urgency above the team's": ("urgency", job(labels={URGENCY_LABEL: "high"})),
    "A16 an urgency that does not exist": (
        "urgency",
        job("PyTorchJob", labels={URGENCY_LABEL: "urgent"}),
    ),
    "A16 an urgency by the scheduling policy": ("scheduling policy", urged(None)),
    "A28 a job that stays when it is deleted": ("finalizers", job(finalizers=[KEEP])),
    "A28 a PyTorchJob that stays when it is deleted": (
        "finalizers",
        job("PyTorchJob", finalizers=[KEEP]),
    ),
    "A28 a job whose pods a deletion leaves": ("finalizers", job(finalizers=["orphan"])),
    "A29 pods that go on when their job has ended": ("end", ending(None)),
    "A29 pods that are told to go on": ("end", ending("None")),
    "a share of a workload that was admitted already": (
        "group",
        job(labels={"kueue.x-k8s.io/prebuilt-workload-name": "theirs"}),
    ),
    "a pod of a group": (
        "group",
        job("PyTorchJob", labels={"kueue.x-k8s.io/pod-group-name": "theirs"}),
    ),
}
"""What is tried → the rule that refuses it, and the object."""


def test_every_rule_of_the_policy_has_an_attack() -> None:
    assert {rule for rule, _ in REFUSED.values()} == RULES.keys()


@pytest.mark.parametrize("kind", VERSIONS)
@pytest.mark.parametrize("urgency", ["", "low", "normal"])
def test_a_job_that_waits_in_the_queue_of_its_team_is_admitted(
    teams: TeamServer, kind: str, urgency: str
) -> None:
    for by in ("member", "deployer"):
        assert made(teams, job(kind, labels={URGENCY_LABEL: urgency}), by) == ""


@pytest.mark.parametrize("by", ["member", "deployer"])
@pytest.mark.parametrize("case", REFUSED)
def test_a_way_round_the_queue_is_refused_by_its_sentence(
    teams: TeamServer, case: str, by: str
) -> None:
    rule, body = REFUSED[case]
    assert RULES[rule].message in made(teams, body, by)


@pytest.mark.parametrize("rule", RULES)
def test_without_its_rule_each_way_round_is_open(teams: TeamServer, rule: str) -> None:
    cases = {name: body for name, (control, body) in REFUSED.items() if control == rule}
    with without_rule(teams, RULES[rule].message):
        for name, body in cases.items():
            assert until(lambda body=body: not made(teams, body)), name
    for name, body in cases.items():
        assert until(lambda body=body: bool(made(teams, body))), name


@pytest.mark.parametrize("kind", VERSIONS)
def test_only_kueue_starts_a_waiting_job(teams: TeamServer, kind: str) -> None:
    """A14 by an update, for everybody of the team, and by the one who may."""
    waiting = job(kind, name=f"waits-{kind.lower()}")
    teams.admin.request("POST", path(kind), waiting)
    start, name = {"spec": RUNS[kind]}, waiting["metadata"]["name"]
    for by in ("member", "deployer"):
        assert RULES["start"].message in changed(teams, kind, name, start, by)
    assert changed(teams, kind, name, start, "kueue") == ""


@pytest.mark.parametrize("kind", VERSIONS)
def test_the_queue_of_a_running_job_cannot_be_changed(teams: TeamServer, kind: str) -> None:
    """A24. What else may change of it while it runs is not this policy's business."""
    name = f"runs-{kind.lower()}"
    teams.admin.request("POST", path(kind), job(kind, name=name))
    patch(teams, kind, name, {"spec": RUNS[kind]}, "kueue")
    for queue in (None, "nlp"):
        change = {"metadata": {"labels": {QUEUE_LABEL: queue}}}
        assert RULES["queue"].message in changed(teams, kind, name, change)
    assert changed(teams, kind, name, {"metadata": {"labels": {"note": "mine"}}}) == ""


@pytest.mark.parametrize("kind", VERSIONS)
def test_nobody_of_a_team_adds_a_finalizer_and_everybody_takes_one_off(
    teams: TeamServer, kind: str
) -> None:
    """A28 by an update, and by the account of schedules. A job that has had a finalizer before keeps it."""
    name, more = f"kept-{kind.lower()}", {"metadata": {"finalizers": ["x.io/own", KEEP]}}
    teams.admin.request("POST", path(kind), job(kind, name=name, finalizers=["x.io/own"]))
    message = RULES["finalizers"].message
    starter = As(
        teams.server, "system:serviceaccount:team-vision:s", SERVICE_ACCOUNTS, "system:masters"
    )
    assert message in refusal(starter, "PATCH", path(kind, name), more)
    for by in ("member", "deployer"):
        assert message in changed(teams, kind, name, more, by)
        assert changed(teams, kind, name, {"metadata": {"labels": {"note": "mine"}}}, by) == ""
        assert changed(teams, kind, name, {"metadata": {"finalizers": None}}, by) == ""
    assert refusal(teams.admin, "PATCH", path(kind, name), more) == ""


def test_what_becomes_of_pods_at_the_end_changes_to_what_ends_them_only(teams: TeamServer) -> None:
    """A29 by an update. A job that was there before the rule starts, and is changed otherwise."""
    said = RULES["end"].message
    none = {"spec": {"runPolicy": {"cleanPodPolicy": "None"}}}
    all_of_them = {"spec": {"runPolicy": {"cleanPodPolicy": "All"}}}
    start = {"spec": {"runPolicy": {"suspend": False}}}
    teams.admin.request("POST", path("PyTorchJob"), ending("Running", name="cleans"))
    assert said in changed(teams, "PyTorchJob", "cleans", none)
    assert changed(teams, "PyTorchJob", "cleans", all_of_them) == ""
    with without_rule(teams, said):
        older = ending(None, name="leaves")
        assert until(lambda: not made(teams, older))
        teams.admin.request("POST", path("PyTorchJob"), older)
    assert until(lambda: made(teams, ending(None)))
    assert changed(teams, "PyTorchJob", "leaves", start, "kueue") == ""
    assert changed(teams, "PyTorchJob", "leaves", {"metadata": {"labels": {"a": "b"}}}) == ""
    assert changed(teams, "PyTorchJob", "leaves", all_of_them) == ""


def test_a_priority_class_that_kueue_does_not_read_is_admitted(teams: TeamServer) -> None:
    """A16 by an update: Kueue reads the class when the label of the urgency is gone."""
    said, label = (
        RULES["scheduling policy"].message,
        {"metadata": {"labels": {URGENCY_LABEL: None}}},
    )
    start, more = {"spec": {"runPolicy": {"suspend": False}}}, {"metadata": {"labels": {"a": "b"}}}
    assert made(teams, urged("normal")) == ""
    teams.admin.request("POST", path("PyTorchJob"), urged("low", name="labelled"))
    assert said in changed(teams, "PyTorchJob", "labelled", label)
    assert changed(teams, "PyTorchJob", "labelled", more) == ""
    with without_rule(teams, said):
        assert until(lambda: not made(teams, urged(None)))
        teams.admin.request("POST", path("PyTorchJob"), urged(None, name="urged"))
    assert until(lambda: made(teams, urged(None)))
    assert changed(teams, "PyTorchJob", "urged", more) == ""
    assert changed(teams, "PyTorchJob", "urged", start, "kueue") == ""
    higher = {"spec": {"runPolicy": {"schedulingPolicy": {"priorityClass": "high"}}}}
    assert said in changed(teams, "PyTorchJob", "urged", higher)


ORPHANS = ("propagationPolicy=Orphan", "orphanDependents=true")
"""Queries of a DELETE that leave the pods of a job: `kubectl delete --cascade=orphan`."""


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_job_is_deleted_with_its_pods(teams: TeamServer, kind: str) -> None:
    """A28 by a deletion."""
    name = f"deleted-{kind.lower()}"
    teams.admin.request("POST", path(kind), job(kind, name=name))
    binding = (
        f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{DELETION_POLICY}"
    )

    def refused(query: str, by: str = "member") -> str:
        return refusal(_of(teams, by), "DELETE", f"{path(kind, name)}?{query}")

    for by, query in itertools.product(("member", "deployer"), ORPHANS):
        assert WHOLE.message in refused(query, by)
    body = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"}
    assert WHOLE.message in refusal(teams.of("member"), "DELETE", path(kind, name), body)
    for query in ("propagationPolicy=Foreground", "propagationPolicy=Background", "pretty=false"):
        assert refused(query) == ""
    assert refusal(teams.admin, "DELETE", f"{path(kind, name)}?{ORPHANS[0]}") == ""
    teams.admin.request("DELETE", binding)
    try:
        assert until(lambda: not any(map(refused, ORPHANS)))
    finally:
        teams.put(teams.objects[f"ValidatingAdmissionPolicyBinding {DELETION_POLICY}"])
    assert until(lambda: refused(ORPHANS[0]))
    # The API server writes the finalizer of a deletion in the foreground, and nobody is asked for that.
    _of(teams, "member").request("DELETE", f"{path(kind, name)}?propagationPolicy=Foreground")
    assert until(lambda: teams.admin.get(job(kind, name=name)) is None)


@pytest.mark.parametrize("kind", VERSIONS)
def test_kueue_stops_a_job_that_rules_of_today_would_refuse(teams: TeamServer, kind: str) -> None:
    """A stop that is refused leaves the quota of the job reserved, and the team that is guaranteed it waits."""
    name, stop = f"older-{kind.lower()}", {"spec": WAITS[kind]}
    teams.admin.request("POST", path(kind), job(kind, name=name))
    patch(teams, kind, name, {"spec": RUNS[kind]}, "kueue")
    with without_rule(teams, RULES["queue"].message):
        # As one has it that was there before the queues.
        unqueued = {"metadata": {"labels": {QUEUE_LABEL: None}}}
        assert until(lambda: not changed(teams, kind, name, unqueued))
        patch(teams, kind, name, unqueued, "member")
    assert until(lambda: bool(made(teams, job(kind, queue=""))))
    before = _prefixes(teams, "registry.example.com/other/")
    try:
        assert until(lambda: TEAM_RULES["images"].message in made(teams, job(kind)))
        assert changed(teams, kind, name, stop, "kueue") == ""
        assert "denied request" in changed(teams, kind, name, stop)
    finally:
        _prefixes(teams, before)
    assert until(lambda: not made(teams, job(kind)))


def _prefixes(teams: TeamServer, wanted: str) -> str:
    """Give the team other image_prefixes, and return those of before."""
    at = "/api/v1/namespaces/team-vision"
    before = teams.admin.request("GET", at)["metadata"]["annotations"][IMAGE_PREFIXES]
    notes = {"metadata": {"annotations": {IMAGE_PREFIXES: wanted}}}
    teams.admin.request("PATCH", at, notes, content_type=MERGE)
    return before


RUNTIMES = f"/apis/{VERSIONS['TrainJob']}/namespaces/team-vision/trainingruntimes"


def runtime(gpus: int) -> Object:
    container = {
        "name": "node",
        "image": f"{PREFIX}a:1",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    node = {"name": "node", "template": template}
    return {
        "apiVersion": VERSIONS["TrainJob"],
        "kind": "TrainingRuntime",
        "metadata": {
            "name": "own",
            "namespace": "team-vision",
            "finalizers": [IN_USE, "x.io/other"],
        },
        "spec": {"template": {"spec": {"replicatedJobs": [node]}}},
    }


@pytest.fixture(scope="module")
def own_runtime(teams: TeamServer) -> str:
    """A runtime of the team that a job names, by the finalizer of the Trainer; its address."""
    teams.admin.request("POST", RUNTIMES, runtime(8))
    return f"{RUNTIMES}/own"


RUNTIME_ATTACKS: dict[str, tuple[str, Object]] = {
    "a runtime that hides the GPUs of its gang": ("pods", {"spec": runtime(0)["spec"]}),
    "a runtime that is made anew under its gang": (
        "use",
        {"metadata": {"finalizers": ["x.io/other"]}},
    ),
}
"""What is tried → the rule that refuses it, and the change."""


@pytest.mark.parametrize("case", RUNTIME_ATTACKS)
def test_a_runtime_that_queues_count_by_is_not_changed(
    teams: TeamServer, own_runtime: str, case: str
) -> None:
    assert {rule for rule, _ in RUNTIME_ATTACKS.values()} == RUNTIME_RULES.keys()
    rule, part = RUNTIME_ATTACKS[case]
    message, deployer = RUNTIME_RULES[rule].message, teams.of("deployer")
    assert message in refusal(deployer, "PATCH", own_runtime, part)
    with without_rule(teams, message):
        assert until(lambda: not refusal(deployer, "PATCH", own_runtime, part))
    assert until(lambda: refusal(deployer, "PATCH", own_runtime, part))


def test_labels_and_finalizers_of_a_runtime_change_and_the_trainer_takes_off_its_own(
    teams: TeamServer, own_runtime: str
) -> None:
    deployer = teams.of("deployer")
    label = {"metadata": {"labels": {"note": "mine"}}}
    other = {"metadata": {"finalizers": [IN_USE]}}
    assert refusal(deployer, "PATCH", own_runtime, label) == ""
    assert refusal(deployer, "PATCH", own_runtime, other) == ""
    _, free = RUNTIME_ATTACKS["a runtime that is made anew under its gang"]
    trainer = As(teams.server, "system:serviceaccount:kubeflow-system:trainer", "system:masters")
    assert refusal(trainer, "PATCH", own_runtime, free) == ""
    body = runtime(8) | {"metadata": {"name": "new", "namespace": "team-vision"}}
    assert refusal(deployer, "POST", RUNTIMES, body) == ""


def test_a_negative_amount_is_no_credit(teams: TeamServer) -> None:
    """A17: Kueue 0.16 would count it as GPUs that come back (kueue#13391)."""
    body = job()
    body["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"nvidia.com/gpu": "-8"}}
    assert "resources must not be negative" in made(teams, body)


def test_everybody_of_a_team_reads_why_a_job_waits_and_nobody_writes_it(teams: TeamServer) -> None:
    def may(role: str, verb: str, resource: str) -> bool:
        return teams.may(role, verb, resource, "kueue.x-k8s.io")

    for role in ("deployer", "member", "viewer"):
        for resource in ("localqueues", "workloads"):
            assert may(role, "list", resource)
            written = [v for v in ("create", "patch", "update", "delete") if may(role, v, resource)]
            assert written == []
        assert not may(role, "list", "clusterqueues")
