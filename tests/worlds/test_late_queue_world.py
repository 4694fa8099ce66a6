"""Gangs in a queue of which one node comes late: Kueue, and for half a PyTorchJob our own program, gives
the nodes back before the late one is there. All gangs are tried again and are Complete, and none has
spent a restart.

Limits of torch run SPEED times faster, as in test_late_nodes_world.py, and so does the queue: QUEUE
seconds are more than the 18 minutes that `trainyard plan` prints. Shells end some seconds after their TERM, and
the second try comes before that."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml

from components.cluster.program import SETTINGS
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds import late_gangs
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from tests.worlds.late_gangs import GANGS, SPEED, Gangs
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.decide import plan_stack
from trainyard.objects.programs.gangs import APP as PROGRAM
from trainyard.objects.queues.queues import CONTROLLER, NAMESPACE
from trainyard.reports.policy import policies
from trainyard.settings.reading.reader import read_file

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]

STACK, TEAM = "late", "vision"
QUEUE, AGAIN = 25, 2
"""Seconds: how long the queue lets a gang wait; before the second try."""
EVERY = 0.5
"""Seconds between two looks for pods that need a node."""


def _stack(release: str) -> Object:
    trainer = {"version": release, "runtimes": ["torch-distributed"]}
    return with_l4(
        trainer={**trainer, "own_runtimes": late_gangs.RUNTIMES},
        training_operator={"version": "1.8.1"},
        pools={"l4": late_gangs.POOL},
        queues={},
        teams={TEAM: {"deployer": f"arn:aws:iam::123456789012:role/{TEAM}"}},
    )


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Of the Trainer, and with it of Kueue."""
    return request.param


@pytest.fixture(scope="module")
def gangs(release: str) -> Iterator[Gangs]:
    """All gangs have given back a node on which a pod waited, and all nodes are there at last."""
    team = {"environment": STACK, "name": TEAM, "jobs": late_gangs.jobs()}
    config = {"aws:region": "us-east-2", "trainyard:team": team}
    files = {**late_gangs.files(), f"Pulumi.{TEAM}.yaml": yaml.safe_dump({"config": config})}
    with rehearsing_teams(STACK, _stack(release), later=("queues", "teams"), files=files) as made:
        nodes = until(lambda: late_gangs.ready_nodes(made), made.log.read_text)
        _hurry(made)
        made.shell(f"kubectl cordon {' '.join(nodes)}")
        _let_the_team(made)
        made.do("up", "--stack", TEAM, "--wait", "1")  # the gangs go on without it
        made.do("kubeconfig", "--stack", STACK)
        gangs, waited = Gangs(harness=made, namespace=f"team-{TEAM}"), dict[str, str]()

        def all_have_waited() -> bool:
            """Whether of each gang an early pod has run that is there no more."""
            try:
                early = gangs.early()
            except RuntimeError:  # no answer: a busy machine
                return False
            gangs.bind([pod for pod in early.values() if "nodeName" not in pod["spec"]], nodes[:2])
            now = {name: pod["metadata"]["uid"] for name, pod in early.items()}
            for name, pod in early.items():
                if late_gangs.has_begun(pod):
                    waited.setdefault(name, now[name])
            return all(name in waited and now.get(name) != waited[name] for name in GANGS)

        until(all_have_waited, lambda: f"{waited} {gangs.seen()}", every=EVERY)
        made.shell(f"kubectl uncordon {' '.join(nodes)}")
        yield gangs


def _hurry(harness: Harness) -> None:
    """Kueue and the program of half gangs count seconds where they count minutes."""
    kueue = harness.get(f"configmap -n {NAMESPACE} kueue-manager-config")
    [(file, text)] = kueue["data"].items()
    config = yaml.safe_load(text)
    wait = config["waitForPodsReady"]
    assert 60 * int(wait["timeout"].removesuffix("m")) >= 300
    wait |= {"timeout": f"{QUEUE}s", "recoveryTimeout": f"{QUEUE}s"}
    wait["requeuingStrategy"] |= {"backoffBaseSeconds": AGAIN}
    kueue["data"] = {file: yaml.safe_dump(config)}
    program = harness.get(f"configmap -n {PROGRAM} {PROGRAM}")
    quick = {"look_seconds": 1, "ready_seconds": QUEUE, "backoff_seconds": AGAIN}
    program["data"][SETTINGS] = json.dumps(json.loads(program["data"][SETTINGS]) | quick)
    for made in (kueue, program):
        harness.shell(f"kubectl replace --filename - <<'EOF'\n{json.dumps(made)}\nEOF")
    for space, name in ((NAMESPACE, CONTROLLER), (PROGRAM, PROGRAM)):
        harness.shell(f"kubectl -n {space} delete pod --all")
        harness.shell(f"kubectl -n {space} rollout status deployment/{name} --timeout=180s")


def _let_the_team(harness: Harness) -> None:
    plan = plan_stack(read_file(TEAM, harness.checkout), harness.checkout).accepted()
    [policy] = policies(plan).values()
    given = f"--role-name {TEAM} --policy-name contract"
    harness.shell(f"aws iam put-role-policy {given} --policy-document '{json.dumps(policy)}'")


@pytest.mark.parametrize("name", GANGS)
def test_a_gang_gives_its_node_back_and_ends_without_a_restart(gangs: Gangs, name: str) -> None:
    gangs.ends_without_a_restart(name)
    assert QUEUE > 600 / SPEED, "torch by itself would have given up before the queue"
