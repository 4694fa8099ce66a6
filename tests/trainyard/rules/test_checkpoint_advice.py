"""Whoever writes what the advice on checkpoints says trains no less than before, and is not sent round in
a circle."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
import yaml
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.support.stackfile import ENVIRONMENT, at, values, without
from trainyard.derive.stores import job_verdict
from trainyard.problems import REMOVE, InputError
from trainyard.rules.checkpoint_advice import MOST
from trainyard.rules.checkpoints import checkpoint_errors, checkpoint_warnings
from trainyard.rules.stores import store_errors
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.reader import read
from trainyard.stores.goodput import Verdict
from trainyard.stores.kind import Surroundings

JOB = "environment.jobs.j"
Stack = dict[str, Any]

LUSTRE = st.one_of(
    st.builds(
        lambda size, tier: {"capacity_gib": size, "throughput_mbps_per_tib": tier},
        st.sampled_from([1200, 2400, 4800, 9600, 38400]),
        st.sampled_from([125, 250, 500, 1000]),
    ),
    st.builds(
        lambda size: {"capacity_gib": size, "deployment": "SCRATCH_2"},
        st.sampled_from([1200, 2400, 9600]),
    ),
    st.builds(
        lambda goodput: {
            "for_model": {"parameters_billion": 7, "nodes": 8, "goodput_percent": goodput}
        },
        st.sampled_from([80, 95]),
    ),
    st.just({"capacity_gib": 38400, "throughput_mbps_per_tib": 125, "efa": True}),
)
STORE = st.one_of(
    LUSTRE.map(lambda lustre: {"lustre": lustre}),
    st.sampled_from([{"efs": {}}, {"efs": {"throughput": "provisioned", "throughput_mibps": 128}}]),
)
SAVES = st.fixed_dictionaries(
    {},
    optional={
        "interval_minutes": st.sampled_from([1, 5, 15, 60, 90.5, 240, 1000, 5000]),
        "asynchronous": st.booleans(),
        "keep": st.integers(2, 30),
    },
)
POOL = st.sampled_from(
    [
        {"instance_types": ["p5.48xlarge"]},
        {"instance_types": ["g6e.12xlarge"], "capacity": "spot"},
        {"instance_types": ["g6e.48xlarge"]},
    ]
)
TRAINING = st.fixed_dictionaries(
    {
        "parameters_billion": st.sampled_from([0.3, 7, 30, 70, 405]),
        "nodes": st.sampled_from([1, 2, 8, 64, 256]),
    },
    optional={
        "goodput_percent": st.sampled_from([70, 90, 95, 98, 99.5]),
        "other_stops_per_day": st.sampled_from([0, 1, 6]),
    },
)


def stack(training: Stack, pool: Stack, store: Stack, saves: Stack) -> Stack:
    """What a stack file says of the job, its pool and its store."""
    return {
        "zone": "us-west-2a",
        "pools": {"g": {**pool, "max_nodes": training["nodes"]}},
        "storage": {"scratch": copy.deepcopy(store)},
        "jobs": {
            "j": {
                **training,
                "pool": "g",
                "image": "public.ecr.aws/x/train:1",
                "script": "torchrun train.py",
                "runtime": "torch-distributed",
                "checkpoints": {"store": "scratch", "directory": "j", **saves},
            }
        },
    }


def judged(said: Stack) -> tuple[Verdict | None, list[InputError], list[str]]:
    """Verdict, errors and warnings of the job's checkpoints and of its stores."""
    changes = [at(key, value) for key, value in said.items()]
    found = values(*changes) | {"aws:region": said["zone"][:-1]}
    reading = read(found, stack="dev", project="trainyard")
    config = reading.config
    assert config and config.environment, found[ENVIRONMENT]
    environment, region = config.environment, config.region
    job = environment.jobs["j"]
    assert isinstance(job, JobConfig)
    around = Surroundings(
        region=region,
        pools=environment.pools,
        instance_types=[pool.instance_types[0] for pool in environment.pools.values()],
    )
    errors = [
        *reading.errors,
        *checkpoint_errors(JOB, job, environment, region),
        *(
            error
            for name, store in environment.storage.items()
            for error in store_errors(f"environment.storage.{name}", store, around)
        ),
    ]
    warnings = [one.text for one in checkpoint_warnings(JOB, job, environment, region)]
    return job_verdict(job, environment, region), errors, warnings


def advice(errors: list[InputError], warnings: list[str]) -> str:
    """What is said that would keep more; empty where nothing is."""
    fixes = [one.fix for one in errors if one.path == f"{JOB}.goodput_percent"]
    said = [fix.partition("; ")[2] for fix in fixes]
    said += [text.partition("to train; ")[2] for text in warnings if "to train; " in text]
    assert len(said) <= 1, said
    return said[0] if said else ""


def followed(said: Stack, text: str) -> Stack:
    """The stack file with what the advice says."""
    changed = copy.deepcopy(said)
    saves = changed["jobs"]["j"]["checkpoints"]
    if minutes := re.search(r"interval_minutes: ([\d.]+)", text):
        saves["interval_minutes"] = float(minutes[1])
    if "asynchronous: true" in text:
        saves["asynchronous"] = True
    if lustre := re.search(r"lustre: ({[^}]*})", text):
        wanted = yaml.safe_load(lustre[1])
        if "a store of lustre" in text:
            changed["storage"]["fast"] = {"lustre": wanted}
            saves["store"] = "fast"
        else:
            own = changed["storage"][saves["store"]]["lustre"]
            own.pop("for_model", None)
            own |= wanted
    assert changed != said, f"it says nothing to write: {text}"
    return changed


N2 = (
    {"parameters_billion": 7, "nodes": 8},
    {"instance_types": ["g6e.12xlarge"], "capacity": "spot"},
    {"lustre": {"capacity_gib": 2400, "deployment": "SCRATCH_2"}},
)
"""A stack of which following the advice took the goodput from 90 to 84 %."""


@given(TRAINING, POOL, STORE, SAVES)
@example(*N2, {"interval_minutes": 60})
@example(*N2, {})
def test_following_the_advice_never_lowers_goodput_and_ends(
    training: Stack, pool: Stack, store: Stack, saves: Stack
) -> None:
    said, before = stack(training, pool, store, saves), None
    for step in range(3):
        verdict, errors, warnings = judged(said)
        text = advice(errors, warnings)
        event(f"step {step}: {re.sub(r'[0-9.]+', 'N', text)}")
        if verdict is None or text in ("", MOST):
            return
        assert text != before, "the same advice again"
        known = {(one.path, one.must) for one in errors}
        before, said = text, followed(said, text)
        after, errors, _ = judged(said)
        assert after and after.goodput >= verdict.goodput, (text, verdict, after)
        assert f"{after.goodput:.1%}" in text, (text, after.goodput)
        new = [one for one in errors if not one.path.endswith("goodput_percent")]
        assert {(one.path, one.must) for one in new} <= known, (text, new)
    raise AssertionError(f"after two steps it still says {before}")


LARGE, P5 = {"parameters_billion": 405, "nodes": 64}, {"instance_types": ["p5.48xlarge"]}
MODEL = {"for_model": {"parameters_billion": 7, "nodes": 8, "goodput_percent": 95}}
EFA = {"capacity_gib": 38400, "throughput_mbps_per_tib": 125, "efa": True}


@given(TRAINING, POOL, STORE, SAVES)
@example(LARGE, P5, {"lustre": MODEL}, {})
@example(LARGE, P5, {"lustre": EFA}, {"keep": 30})
@example({**LARGE, "goodput_percent": 70}, P5, {"lustre": EFA}, {"interval_minutes": 5000})
def test_a_fix_of_checkpoints_ends_its_error_and_lowers_no_goodput(
    training: Stack, pool: Stack, store: Stack, saves: Stack
) -> None:
    said = stack(training, pool, store, saves)
    verdict, errors, _ = judged(said)
    for error in errors:
        changed = copy.deepcopy(said)
        path = error.path.removeprefix("environment.")
        if error.write is not None:
            (without(path) if error.write is REMOVE else at(path, error.write))(changed)
        elif size := re.search(r"capacity_gib: (\d+) or more", error.fix):
            own = changed["storage"]["scratch"]["lustre"]
            own["capacity_gib"] = int(size[1])
            if tier := re.search(
                r"throughput_mbps_per_tib: (\d+).* in the place of (\w+)", error.fix
            ):
                own["throughput_mbps_per_tib"] = int(tier[1])
                del own[tier[2]]
        else:
            continue
        event(re.sub(r"[0-9.]+", "N", error.must))
        after, left, _ = judged(changed)
        assert not any((one.path, one.must) == (error.path, error.must) for one in left), error
        known = {one.path for one in errors}
        assert {one.path for one in left} <= known, (error, left)
        assert verdict is None or (after and after.goodput >= verdict.goodput), (error, after)


FASTER = (
    "lustre: {capacity_gib: 2400, throughput_mbps_per_tib: 500, deployment: PERSISTENT_2} keeps"
    " 95.3%"
)


@pytest.mark.parametrize(
    ("stops", "saves", "says"),
    [
        (0, {"interval_minutes": 60}, "interval_minutes: 406 keeps 97.0%"),
        (0, {}, ""),
        (1, {"interval_minutes": 60}, FASTER),
        (1, {}, FASTER),
    ],
)
def test_another_interval_is_proposed_before_another_store(
    stops: int, saves: Stack, says: str
) -> None:
    """With a stop a day no interval is enough on that store."""
    training, pool, store = N2
    said = stack({**training, "other_stops_per_day": stops}, pool, store, saves)
    assert advice(*judged(said)[1:]) == says
