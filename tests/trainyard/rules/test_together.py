"""What jobs and teams cannot share, and what they are warned of."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, planned, without
from trainyard.decide import plan_stack
from trainyard.plan import Planned
from trainyard.rules.together import Saved, shared_directory_errors
from trainyard.settings.reading.reader import read_file

JOB = "jobs.t5-large"


def second(**more: Any) -> Edit:
    """Another job like the first."""
    return lambda settings: settings["jobs"].update(
        other={**settings["jobs"]["t5-large"], "checkpoints": saved("other"), **more}
    )


def saved(directory: str, store: str = "scratch") -> dict[str, str]:
    return {"store": store, "directory": directory}


@pytest.mark.parametrize(
    "directory", ["t5-large", "t5-large/", "t5-large/a", "./t5-large", "t5-large//a/b"]
)
def test_a_directory_that_is_another_jobs_or_inside_it_is_refused(directory: str) -> None:
    directories = [f"{error.path} {error.must}" for error in at_directory(directory).errors]
    assert len(directories) == 1 and directories[0].startswith("environment.jobs.other.checkpoints")


def at_directory(directory: str, **more: Any) -> Planned:
    return planned(second(checkpoints=saved(directory.rstrip("/"), **more)))


def test_a_directory_around_another_jobs_is_refused() -> None:
    [error] = planned(
        at(f"{JOB}.checkpoints.directory", "runs/t5-large"), second(checkpoints=saved("runs"))
    ).errors
    assert "be apart from runs/t5-large, the directory of job t5-large; got runs" in str(error)


def test_directories_beside_each_other_and_of_two_stores_are_apart() -> None:
    assert at_directory("t5-large-2").errors == ()
    assert at_directory("t5-large", store="home").errors == ()


def text_of(*edits: Edit) -> list[str]:
    return [warning.text for warning in planned(*edits).warnings if "together" in warning.text]


def test_gangs_that_need_more_nodes_than_their_pool_has_are_a_warning_with_the_sum() -> None:
    [text] = text_of(second(nodes=3))
    assert text.startswith(
        "jobs need 5 nodes of pool g6e together (t5-large 2, other 3), and it has at most 4:"
    )


def test_of_many_gangs_three_are_named_and_the_others_counted() -> None:
    def many(settings: dict[str, Any]) -> None:
        for number in range(5):
            second(checkpoints=saved(f"of-{number}"))(settings)
            settings["jobs"][f"job-{number}"] = settings["jobs"].pop("other")

    [text] = text_of(many)
    assert "together (t5-large 2, job-0 2, job-1 2, and 3 more)" in text


def team_text_of(max_gpus: int) -> list[str]:
    def two(settings: dict[str, Any]) -> None:
        jobs = settings["jobs"]
        jobs["bert"] = {**jobs["vit-base"], "checkpoints": saved("bert")}

    found = planned(at("max_gpus", max_gpus), two, stack="team-vision").warnings
    return [str(warning) for warning in found if "GPUs together" in warning.text]


def test_jobs_that_exceed_the_share_of_their_team_together_are_a_warning_with_the_sum() -> None:
    [text] = team_text_of(12)
    assert text.startswith(
        "team.jobs: jobs need 16 GPUs together (vit-base 8, bert 8), and team.max_gpus is 12: when"
        " they start at the same time, one gets a part of its pods"
    )
    assert team_text_of(16) == []


def test_gangs_that_fit_together_and_jobs_of_one_node_are_no_warning() -> None:
    assert text_of(second()) == []
    assert text_of(second(nodes=3, pool="h100")) == []
    assert text_of(at("pools.g6e.max_nodes", 2), second(nodes=1)) == []


def hub_text_of(*edits: Edit) -> list[str]:
    large = at("pools.g6e.max_nodes", 200)
    found = planned(large, *edits).warnings
    return [str(warning) for warning in found if "Docker Hub" in warning.text]


HUB = "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"


def test_more_new_nodes_than_docker_hub_gives_images_to_one_address_are_a_warning() -> None:
    many = at(f"{JOB}.nodes", 60), at(f"{JOB}.image", HUB)
    [text] = hub_text_of(*many, second(nodes=41))
    assert text.startswith(
        "environment.jobs: 101 new nodes pull images from Docker Hub (t5-large 60, other 41), all"
        " through the address of the NAT gateway. Docker Hub gives an address 100 pulls in 6 hours"
    )
    assert hub_text_of(*many, second(nodes=40)) == []


def ecr_text_of(*edits: Edit) -> list[str]:
    large = at("pools.g6e.max_nodes", 200)
    found = planned(large, *edits).warnings
    return [str(warning) for warning in found if "toomanyrequests" in warning.text]


def test_more_images_than_ecr_public_gives_without_a_login_in_a_minute_are_a_warning() -> None:
    [text] = ecr_text_of(at(f"{JOB}.nodes", 61))
    assert text.startswith(
        "environment.jobs: new nodes pull 61 images from public.ecr.aws (t5-large 61), all through"
        " the address of the NAT gateway. Without a login it gives 1 image a second"
    )
    assert "up to 5 minutes" in text
    assert ecr_text_of(at(f"{JOB}.nodes", 60)) == []
    assert ecr_text_of(at(f"{JOB}.nodes", 61), at(f"{JOB}.image", HUB)) == []
    copies = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
    assert ecr_text_of(at(f"{JOB}.nodes", 61), at("artifacts", {"images": copies})) == []


def test_fluent_bit_comes_from_ecr_public_to_every_node_too() -> None:
    own = at(f"{JOB}.image", "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/t:1")
    logs = at("logs", {})
    assert ecr_text_of(at(f"{JOB}.nodes", 30), logs) == []
    [text] = ecr_text_of(at(f"{JOB}.nodes", 31), logs)
    assert "62 images" in text
    assert ecr_text_of(at(f"{JOB}.nodes", 60), logs, own) == []
    assert len(ecr_text_of(at(f"{JOB}.nodes", 61), logs, own)) == 1


def test_the_exporter_of_efa_comes_from_ecr_public_to_nodes_with_efa() -> None:
    own = at(f"{JOB}.image", "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/t:1")
    metrics = at("metrics", {})
    [text] = ecr_text_of(at(f"{JOB}.nodes", 61), metrics, own)
    assert "61 images" in text
    without_efa = at("pools.g6e.instance_types", ["g6e.4xlarge"])
    assert ecr_text_of(at(f"{JOB}.nodes", 61), metrics, own, without_efa) == []


def test_images_of_other_registries_and_pulls_with_an_account_are_not_counted() -> None:
    many = at(f"{JOB}.nodes", 101)
    assert hub_text_of(many) == [], "from public.ecr.aws"
    assert len(hub_text_of(many, at(f"{JOB}.image", f"docker.io/{HUB}"))) == 1
    account = at(f"{JOB}.pull_secrets", ["hub"])
    assert hub_text_of(many, at(f"{JOB}.image", HUB), account) == []


def test_the_image_that_waits_for_a_master_is_counted_too() -> None:
    job = at(f"{JOB}.pytorch_job", {}), without(f"{JOB}.runtime")
    operator = at("training_operator", {"version": "1.8.1"})
    [text] = hub_text_of(operator, *job, at(f"{JOB}.nodes", 102))
    assert "101 new nodes pull docker.io/library/alpine:3.10 from Docker Hub (t5-large 101)" in text
    assert hub_text_of(operator, *job, at(f"{JOB}.nodes", 101)) == []
    assert hub_text_of(at(f"{JOB}.nodes", 102)) == []


def test_pods_with_a_part_of_the_gpus_and_all_efa_devices_pull_an_image_each() -> None:
    halves = at(f"{JOB}.gpus_per_node", 4), at(f"{JOB}.image", HUB)
    script = at(f"{JOB}.script", "accelerate launch t5.py")
    assert hub_text_of(*halves, script, at(f"{JOB}.nodes", 100)) == []
    [text] = hub_text_of(*halves, script, at(f"{JOB}.nodes", 102))
    assert "102 new nodes" in text


def test_gangs_on_parts_of_nodes_with_efa_take_a_node_a_pod() -> None:
    """A pod of a gang has all EFA devices of its node."""
    halves = {"gpus_per_node": 4, "script": "accelerate launch t5.py"}
    assert text_of(second(nodes=2, **halves)) == []
    [text] = text_of(second(nodes=4, **halves))
    assert "need 6 nodes of pool g6e together (t5-large 2, other 4)" in text


def on_cpus(name: str, nodes: int, **more: Any) -> Edit:
    """A gang whose pods take 7 of a node's 16 vCPUs."""
    job = {
        "runtime": "torch-distributed",
        "pool": "cpus",
        "image": "a/b:1",
        "script": "python t.py",
    }
    job |= {
        "nodes": nodes,
        "cpus_per_node": 7,
        "processes_per_node": 1,
        "allow_no_checkpoint": True,
    }
    return at(f"jobs.{name}", job | more)


CPUS = at("pools.cpus", {"instance_types": ["m7i.4xlarge"], "max_nodes": 3})


def test_gangs_that_share_nodes_are_counted_by_nodes() -> None:
    assert text_of(CPUS, on_cpus("a", 2), on_cpus("b", 4)) == []
    [text] = text_of(CPUS, on_cpus("a", 2), on_cpus("b", 6))
    assert "need 4 nodes of pool cpus together (a 1, b 3)" in text


def test_gangs_of_which_one_comes_after_the_other_are_not_counted_together() -> None:
    assert len(text_of(CPUS, on_cpus("a", 4), on_cpus("b", 6))) == 1
    assert text_of(CPUS, on_cpus("a", 4), on_cpus("b", 6, after=["a"])) == []
    between = on_cpus("c", 1, after=["a"])
    assert text_of(CPUS, on_cpus("a", 4), between, on_cpus("b", 6, after=["c"])) == []
    [text] = text_of(CPUS, on_cpus("a", 4), on_cpus("b", 6, after=["a"]), on_cpus("d", 2))
    assert "need 4 nodes of pool cpus together (b 3, d 1)" in text
    fits = on_cpus("b", 4, after=["a"]), on_cpus("d", 2)
    assert text_of(CPUS, on_cpus("a", 4), *fits) == []


def test_as_many_runs_of_a_sweep_are_counted_as_go_at_once() -> None:
    runs, script = {"LR": ["1", "2", "3"]}, "python t.py --lr $LR"
    all_of_them = on_cpus("a", 4, sweep={"over": runs}, script=script)
    [text] = text_of(CPUS, all_of_them)
    assert "need 6 nodes of pool cpus" in text
    one_by_one = on_cpus("a", 4, sweep={"over": runs, "at_most": 1}, script=script)
    assert text_of(CPUS, one_by_one) == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An environment and two teams of it."""
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    text = (CHECKOUT / "Pulumi.team-vision.yaml").read_text()
    (tmp_path / "Pulumi.team-two.yaml").write_text(
        text.replace("namespace: team-vision", "namespace: team-two").replace(
            "directory: vit-base", "directory: two"
        )
    )
    return tmp_path


def change(checkout: Path, old: str, new: str) -> list[str]:
    """Errors of the second team after a change of its stack file."""
    file = checkout / "Pulumi.team-two.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    planned = plan_stack(read_file("team-two", checkout), checkout)
    return [f"{error.path}: must {error.must}" for error in planned.errors]


def test_two_teams_with_their_own_namespaces_and_directories_are_sound(checkout: Path) -> None:
    assert change(checkout, "nodes: 1", "nodes: 1") == []


def test_a_namespace_of_another_team_is_refused(checkout: Path) -> None:
    assert change(checkout, "namespace: team-two", "namespace: team-vision") == [
        "team.namespace: must not be the namespace of another team, which"
        " Pulumi.team-vision.yaml has"
    ]


def test_a_directory_of_another_team_is_refused(checkout: Path) -> None:
    assert change(checkout, "directory: two", "directory: vit-base/again") == [
        "team.jobs.vit-base.checkpoints.directory: must be apart from vit-base, the directory"
        " of job vit-base of team-vision"
    ]


def test_a_refused_directory_has_a_fix_that_is_free(checkout: Path) -> None:
    """A job of the same name in another team has the directory of that name."""
    assert change(checkout, "directory: two", "directory: vit-base") != []
    file = checkout / "Pulumi.team-two.yaml"
    [error] = plan_stack(read_file("team-two", checkout), checkout).errors
    assert error.fix == "write a directory of the job's own, such as vit-base-2"
    file.write_text(file.read_text().replace("directory: vit-base", "directory: vit-base-2"))
    assert plan_stack(read_file("team-two", checkout), checkout).errors == ()


def test_a_team_of_another_environment_may_have_the_same_names(checkout: Path) -> None:
    other = checkout / "Pulumi.team-vision.yaml"
    other.write_text(other.read_text().replace("environment: dev", "environment: prod"))
    assert change(checkout, "namespace: team-two", "namespace: team-vision") == []


def test_a_broken_stack_file_of_another_team_is_its_own_business(checkout: Path) -> None:
    (checkout / "Pulumi.team-three.yaml").write_text("config: [\n  trainyard:team: {")
    assert change(checkout, "nodes: 1", "nodes: 1") == []


def test_gangs_of_a_team_and_of_its_environment_are_counted_together(checkout: Path) -> None:
    environment = checkout / "Pulumi.dev.yaml"
    environment.write_text(environment.read_text().replace("max_nodes: 4", "max_nodes: 3"))
    assert change(checkout, "nodes: 1", "nodes: 2") == []
    found = plan_stack(read_file("team-two", checkout), checkout).warnings
    [text] = [warning.text for warning in found if "together" in warning.text]
    assert "4 nodes of pool g6e together (t5-large of dev 2, vit-base 2)" in text


PLACES = st.lists(
    st.tuples(
        st.sampled_from(["scratch", "home"]),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(lambda parts: "/".join(parts)),
    ),
    max_size=6,
)


@given(places=PLACES, elsewhere=st.integers(0, 6))
def test_the_first_directory_that_is_in_the_way_is_found_as_pair_by_pair(
    places: list[tuple[str, str]], elsewhere: int
) -> None:
    saves = [
        Saved(job=str(n), path="p.j.c.d", store=store, directory=PurePosixPath(directory))
        for n, (store, directory) in enumerate(places)
    ]
    others, own = saves[:elsewhere], saves[elsewhere:]
    expected = [
        next((o.job for o in (*others, *own[:n]) if _overlap(save, o)), None)
        for n, save in enumerate(own)
    ]
    found = [error.must for error in shared_directory_errors(own, others)]
    assert len(found) == len([job for job in expected if job]) and all(
        must.endswith(f"of job {job}")
        for job, must in zip(filter(None, expected), found, strict=True)
    )


def _overlap(one: Saved, other: Saved) -> bool:
    inside = one.directory.is_relative_to(other.directory)
    return one.store == other.store and (inside or other.directory.is_relative_to(one.directory))
