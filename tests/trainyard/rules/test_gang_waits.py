"""A launcher that itself gives up too early is warned about, wherever it stands."""

from __future__ import annotations

import pytest

from tests.support.cases.jobs import OPERATOR
from tests.trainyard.derive.test_gang_waits import master_and_workers
from tests.trainyard.manifests.test_admission import environment, made
from tests.trainyard.rules.test_jobs import of_entry, of_file
from trainyard.objects.jobs.rendezvous import VARIABLE, conf

C10D = "torchrun --rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"
ACCELERATE = "accelerate launch --num_machines 2 --machine_rank $PET_NODE_RANK"


def short(said: list[str]) -> list[str]:
    return [each for each in said if "gives up" in each]


TOO_SHORT = {
    "both limits": (f"{C10D} --rdzv_conf=join_timeout=1200,read_timeout=1200 t.py", "join_timeout"),
    "one limit, the other is torch's": (
        f"{C10D} --rdzv_conf join_timeout=90000 t.py",
        "60 s later than another (--rdzv_conf lacks read_timeout)",
    ),
    "that of static with c10d": (f"{C10D} --rdzv-conf='timeout=90000' t.py", "lacks join_timeout"),
    "that of c10d with static": (
        "torchrun --rdzv_conf=join_timeout=90000 t.py",
        "900 s later than another (--rdzv_conf lacks timeout)",
    ),
    "the launcher of a module": (
        "python -m torch.distributed.run --rdzv_conf=timeout=1800 t.py",
        "1800 s later",
    ),
    "accelerate by itself": (f"{ACCELERATE} t.py", "accelerate launch gives up"),
    "accelerate whose nodes are those of PET_NNODES": (
        "accelerate launch t.py",
        "accelerate launch gives up where a node comes 900 s later",
    ),
    "accelerate with its option": (f"{ACCELERATE} --rdzv_conf timeout=60 t.py", "60 s later"),
}


@pytest.mark.parametrize("name", TOO_SHORT)
def test_what_gives_up_too_early_is_told_with_what_to_write(name: str) -> None:
    script, words = TOO_SHORT[name]
    for said in (of_entry, of_file):
        [found] = short(said(script))
        assert words in found and "timeout=86400" in found
        assert short(said(script, nodes=1)) == []


@pytest.mark.parametrize(
    "script",
    [
        f"{C10D} t.py",
        f"{C10D} --rdzv_conf={conf()} t.py",
        f"{C10D} --rdzv_conf=$WAITS t.py",
        f"{C10D} --rdzv_conf=join_timeout=7200,read_timeout=7200 t.py",
        "torchrun t.py --rdzv_conf=timeout=5",
        "torchrun --rdzv_conf=timeout=7200 t.py",
        "torchrun --standalone --rdzv_conf=join_timeout=5 prepare.py; torchrun t.py",
        f"{ACCELERATE} --rdzv_conf timeout=86400 t.py",
        "accelerate launch --config_file one.yaml t.py",
        "deepspeed --num_nodes 2 t.py",
    ],
)
def test_what_waits_long_enough_or_for_nobody_is_not(script: str) -> None:
    assert short(of_entry(script)) == short(of_file(script)) == []


def test_a_variable_of_the_job_is_judged_where_no_option_is() -> None:
    early = "join_timeout=60"
    for said in (of_entry, of_file):
        [found] = short(said(f"{C10D} t.py", 2, PET_RDZV_CONF=early))
        assert f"({VARIABLE} has join_timeout)" in found
        assert short(said(f"{C10D} --rdzv_conf={conf()} t.py", 2, PET_RDZV_CONF=early)) == []


def test_the_policy_of_an_elastic_job_is_judged() -> None:
    def said(seconds: str) -> list[str]:
        limits = [{"key": key, "value": seconds} for key in ("join_timeout", "read_timeout")]
        text = master_and_workers(elasticPolicy={"rdzvBackend": "c10d", "rdzvConf": limits})
        return short([each.text for each in made(text, environment=environment(OPERATOR)).warnings])

    [found] = said("600")
    assert "rdzvConf" in found and said("86400") == []
