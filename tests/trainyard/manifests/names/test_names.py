"""Names of a job file in a team's namespace, in queues, in a cluster of somebody else, and beside blanks."""

from __future__ import annotations

import pytest

from tests.corpus.bad_names import NAMES, RUNTIME, V1, V2
from tests.support.stackfile import at, environment
from tests.trainyard.manifests.test_admission import NO_SHM
from trainyard.manifests.admission import judged
from trainyard.problems import InputError, Problem
from trainyard.settings.environment import EnvironmentConfig

ROLE = "arn:aws:iam::111122223333:role/vision-deployer"
TEAM = at("teams", {"vision": {"deployer": ROLE, "allowed_priorities": ["high"]}})
PRIORITIES = at("priorities", {"high": 1000, "low": 10})
QUEUES = at("queues", {"version": "0.16.9"})
EXISTING = at("cluster.name", "theirs")


def said(text: str, wanted: EnvironmentConfig, namespace: str = "training") -> list[Problem]:
    found = judged(
        text,
        "x.yaml",
        trainer="2.1.0",
        operator="1.8.1",
        environment=wanted,
        pool="g6e",
        claims={"fsx": "scratch-1", "s3": "results-1"},
        namespace=namespace,
        production=False,
        privileged_pods=True,
    )
    said = [*found.errors, *found.warnings]
    return [each for each in said if NO_SHM not in str(each)]


def made(case: str) -> str:
    file, there, instead, *_ = NAMES[case]
    return {"v1": V1, "v2": V2, "runtime": RUNTIME}[file].replace(there, instead, 1)


def texts(problems: list[Problem]) -> list[str]:
    return [*dict.fromkeys(str(each).partition("]: ")[2] for each in problems)]


@pytest.mark.parametrize(
    ("case", "says"),
    [
        (
            "a service account",
            "must be default: a team's namespace admits pods of no other service",
        ),
        ("another scheduler", "must be default-scheduler"),
        ("a priority class", "must be one of the team's allowed_priorities"),
    ],
)
def test_what_a_team_s_namespace_refuses_is_an_error(case: str, says: str) -> None:
    [text] = texts(said(made(case), environment(PRIORITIES, TEAM), "team-vision"))
    assert text.startswith(says)


@pytest.mark.parametrize(
    ("name", "namespace", "is_fine"),
    [
        ("high", "team-vision", True),
        ("low", "team-vision", False),
        ("low", "training", True),
        ("system-node-critical", "training", True),
        ("system-node-critical", "team-vision", False),
    ],
)
def test_a_priority_class_of_the_environment_is_there_for_whoever_may_use_it(
    name: str, namespace: str, is_fine: bool
) -> None:
    text = made("a priority class").replace("high-priority", name)
    assert (said(text, environment(PRIORITIES, TEAM), namespace) == []) is is_fine


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("another scheduler", "neither the file nor the stack makes scheduler kai-scheduler"),
        ("the name of a node", "neither the file nor the stack makes node"),
        ("a group of pods", "the stack does not install what coscheduling needs"),
        ("a volume of another cloud", "azureFile must be a volume that nodes can mount"),
        ("a job that somebody else runs", "example.com/runner must be Trainer's own"),
        ("a device of FUSE", "nothing of the stack gives nodes of pool g6e the resource"),
    ],
)
def test_what_nobody_serves_is_a_warning_in_a_cluster_of_somebody_else(
    case: str, says: str
) -> None:
    problems = said(made(case), environment(EXISTING))
    [text] = texts(problems)
    assert text.startswith(says) and not any(isinstance(each, InputError) for each in problems)


def test_a_device_plugin_may_be_installed_on_nodes_that_are_kept() -> None:
    kept = environment(at("pools.g6e.replicas", 2))
    [problem] = said(made("a device of FUSE"), kept)
    assert not isinstance(problem, InputError)
    pages = made("a device of FUSE").replace("smarter-devices/fuse: 1", "hugepages-2Mi: 1Gi")
    [problem] = said(pages, kept)
    assert isinstance(problem, InputError)


IN_QUEUE: dict[str, tuple[str, str]] = {
    "a suspended job": ("", ""),
    "a queue": ("", "the job is in queue vision, which the stack writes here"),
    "a priority of a queue": ("", "the stack writes here what urgency says"),
}


@pytest.mark.parametrize("case", IN_QUEUE)
def test_in_a_team_s_queue_kueue_resumes_and_the_stack_writes_the_labels(case: str) -> None:
    team = at("teams", {"vision": {"deployer": ROLE}})
    found = texts(said(made(case), environment(QUEUES, team), "team-vision"))
    assert [text for text in found if "queue" in text or "urgency" in text] == found
    assert len(found) == (1 if IN_QUEUE[case][1] else 0)
    assert all(text.startswith(IN_QUEUE[case][1]) for text in found)


def test_a_priority_of_the_scheduling_policy_is_said_to_be_nobody_s() -> None:
    """Kueue reads it, but for the label that the stack writes."""
    text = made("a policy of gangs").replace("minAvailable: 2", "priorityClass: high")
    [here] = texts(said(text, environment(QUEUES, TEAM), "team-vision"))
    assert "Kueue reads the urgency that the stack writes; delete it" in here
    assert "urgency beside `manifest` says which goes first" in here
    [alone] = texts(said(text, environment()))
    assert "Kueue" not in alone and "priorityClassName in the pods says which goes first" in alone


def test_a_job_of_the_environment_is_in_no_queue() -> None:
    found = texts(said(made("a queue"), environment(QUEUES)))
    assert found[0].startswith("namespace training has no queue research: the job waits for ever")
    [text] = texts(said(made("a suspended job"), environment(QUEUES)))
    assert "as its namespace has no queue" in text


BLANKS: dict[str, tuple[str, str, str]] = {
    "a ConfigMap": (V1, "metadata: {name: code}", "metadata: {name: '{}'}"),
    "a runtime": (RUNTIME, "metadata: {name: mine}", "metadata: {name: '{}'}"),
    "the name of one": (V1, "configMap: {name: code}", "configMap: {name: '{}'}"),
}


@pytest.mark.parametrize("blank", ["${X_1}", "{{ x.one }}-code", "<X_1>"])
@pytest.mark.parametrize("case", BLANKS)
def test_a_name_that_is_not_known_yet_is_one_error_and_misses_nothing(
    case: str, blank: str
) -> None:
    text, there, instead = BLANKS[case]
    assert there in text
    found = said(text.replace(there, instead.replace("{}", blank), 1), environment())
    assert len({each.line for each in found}) == 1 and "placeholder" in str(found[0])
