"""An update that moves the Trainer says what that does to TrainJobs in queues."""

from __future__ import annotations

from tests.support.recording import Graph
from tests.support.stackfile import at, environment_plan
from trainyard.plans.controllers import RELEASE
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.moving import TRAINER, moving_warnings

NEWER, KUEUE = at("trainer.version", "2.3.0"), at("queues", {})
TEAM = {"deployer": "arn:aws:iam::123456789012:role/vision"}
QUEUES = (at("jobs", {}), at("teams", {"vision": TEAM}), KUEUE)


def test_a_trainer_that_moves_under_queues_is_said_before_the_update(dev: Graph) -> None:
    before = Deployed(resources={(RELEASE, TRAINER): dev[f"Release {TRAINER}"].inputs})
    [warning] = moving_warnings(environment_plan(*QUEUES, NEWER), before)
    assert warning.path == "environment.trainer.version"
    assert "from 2.1.0 to 2.3.0" in warning.text and "Let them end" in warning.text


def test_a_trainer_that_stays_or_is_new_or_has_no_queues_is_not_said(dev: Graph) -> None:
    before = Deployed(resources={(RELEASE, TRAINER): dev[f"Release {TRAINER}"].inputs})
    assert [*moving_warnings(environment_plan(*QUEUES), before)] == []
    assert [*moving_warnings(environment_plan(*QUEUES, NEWER), Deployed())] == []
    assert [*moving_warnings(environment_plan(NEWER), before)] == []
