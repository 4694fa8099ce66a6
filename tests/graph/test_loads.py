"""What an environment makes that loads data and weights, what waits for it, and what it waits for."""

from __future__ import annotations

import json

import pytest

from tests.graph.test_secrets import differ
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.catalog.versions import PYTHON_IMAGE
from trainyard.objects.iam.secrets import ADD_ON, DRIVER
from trainyard.reports.minutes.timeline import schedule
from trainyard.reports.plan import text

JOB = "jobs.t5-large"
HUB = {"repository": "Qwen/Qwen3-8B", "revision": "0" * 40}
WEIGHTS = {
    "q": {
        "from_huggingface": HUB | {"token": {"secret": "hf-token", "key": "token"}},
        "store": "scratch",
        "directory": "models/qwen3-8b",
    }
}
SETS = {
    "c": {
        "from_s3": {"address": "s3://our-sets/corpus/"},
        "store": "home",
        "directory": "corpus",
        "check": {"bytes": 500_000_000_000},
    }
}
BEFORE: list[Edit] = [
    at("pools.cpu", {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}),
    at(f"{JOB}.storage", {"scratch": {"path": "/scratch"}, "home": {"path": "/home"}}),
]


@pytest.fixture(scope="module")
def before() -> Graph:
    return environment(*BEFORE)


@pytest.fixture(scope="module")
def loading() -> Graph:
    return environment(*BEFORE, at(f"{JOB}.weights", WEIGHTS))


def test_a_load_adds_its_job_and_its_program_and_changes_the_run_alone(
    before: Graph, loading: Graph
) -> None:
    new, changed = differ(before, loading)
    [job] = loading.of("kubernetes:batch/v1:Job")
    assert new == {"Loads loads", "ConfigMap loads-program", f"Job {job.name}"}
    assert changed == {"t5-large"}


def test_the_run_waits_for_the_load_and_the_load_for_no_gpu(loading: Graph) -> None:
    [job] = loading.of("kubernetes:batch/v1:Job")
    run = loading["TrainJob t5-large"]
    assert loading.waits_for(run, job) and not loading.waits_for(job, run)
    for earlier in ("NodePool cpu-pool", "Addon coredns", "ConfigMap loads-program"):
        assert loading.waits_for(job, loading[earlier]), earlier
    [claim] = [each for each in loading.of("PersistentVolumeClaim") if "scratch" in each.name]
    assert loading.waits_for(job, claim)
    later = {"Release kubeflow-trainer", "NodePool g6e-pool", "NodePool h100-pool"}
    assert not [name for name in later if loading.waits_for(job, loading[name])]


def test_a_hook_waits_before_the_run_and_after_the_job_is_made(loading: Graph) -> None:
    [job] = loading.of("kubernetes:batch/v1:Job")
    run = loading["TrainJob t5-large"]
    assert [*run.options.hooks.before_create][0] == "t5-large-loaded"
    assert [*job.options.hooks.after_create] == [f"{job.name}-loaded"]
    assert "job-alone" in run.options.hooks.before_create


def test_its_pod_runs_on_a_node_without_gpus_and_asks_for_none(loading: Graph) -> None:
    [job] = loading.of("kubernetes:batch/v1:Job")
    pod = job.inputs["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["nodeSelector"]["trainyard.io/pool"] == "cpu"
    assert "nvidia.com/gpu" not in json.dumps(container["resources"])
    assert container["image"] == PYTHON_IMAGE
    assert job.inputs["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    program = loading["ConfigMap loads-program"].inputs
    assert {"loader.py", "place.py", "sources.py", "query.py"} <= program["data"].keys()
    [mounted] = [each for each in pod["volumes"] if "configMap" in each]
    assert mounted["configMap"]["name"] == program["metadata"]["name"]


def test_the_token_is_a_reference_and_nowhere_a_value(loading: Graph) -> None:
    [job] = loading.of("kubernetes:batch/v1:Job")
    [container] = job.inputs["spec"]["template"]["spec"]["containers"]
    reference = {"secretKeyRef": {"name": "hf-token", "key": "token"}}
    assert container["env"] == [{"name": "HF_TOKEN", "valueFrom": reference}]


def test_a_token_of_secrets_manager_is_mounted_and_exported() -> None:
    graph = environment(
        *BEFORE,
        at(f"{JOB}.weights", WEIGHTS),
        at(f"{JOB}.weights.q.from_huggingface.token", {"secrets_manager": "shared/hf"}),
    )
    [job], [given] = graph.of("kubernetes:batch/v1:Job"), graph.of("SecretProviderClass")
    pod = job.inputs["spec"]["template"]["spec"]
    [volume] = [each["csi"] for each in pod["volumes"] if "csi" in each]
    assert volume["driver"] == DRIVER
    assert volume["volumeAttributes"]["secretProviderClass"] == given.inputs["metadata"]["name"]
    assert "export HF_TOKEN" in " ".join(pod["containers"][0]["command"])
    for earlier in (str(given), f"Addon {ADD_ON}", "PodIdentityAssociation jobs-pods"):
        kind, name = earlier.rpartition(":")[2].split()
        assert graph.waits_for(job, graph.one(kind, name))


def test_a_bucket_is_read_by_the_role_of_the_jobs_and_by_nobody_else() -> None:
    graph = environment(*BEFORE, at(f"{JOB}.data", SETS))
    [job] = graph.of("kubernetes:batch/v1:Job")
    policy = json.loads(graph["RolePolicy jobs-pods-s3"].inputs["policy"])
    arns = json.dumps([each["Resource"] for each in policy["Statement"]])
    assert "arn:aws:s3:::our-sets/corpus/*" in arns and "s3:PutObject" not in json.dumps(policy)
    assert graph.waits_for(job, graph["PodIdentityAssociation jobs-pods"])
    assert not [each for each in graph.of("Addon") if each.name == ADD_ON]


def test_another_store_is_mounted_beside_the_target() -> None:
    copied = {"from_store": {"store": "home", "directory": "sets"}, "store": "scratch"}
    graph = environment(*BEFORE, at(f"{JOB}.data", {"c": copied | {"directory": "sets"}}))
    [job] = graph.of("kubernetes:batch/v1:Job")
    [container] = job.inputs["spec"]["template"]["spec"]["containers"]
    paths = {each["mountPath"] for each in container["volumeMounts"]}
    assert {"/stores/home", "/stores/scratch"} <= paths
    settings = json.loads(container["command"][-1])
    assert settings["source"]["path"] == "/stores/home/sets"
    assert settings["to"] == "/stores/scratch/sets"


def test_the_image_comes_from_the_mirror_where_there_is_one() -> None:
    mirror = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
    plan = environment_plan(*BEFORE, at(f"{JOB}.weights", WEIGHTS), at("artifacts.images", mirror))
    [load] = plan.jobs["t5-large"].loads
    [container] = load.spec["template"]["spec"]["containers"]
    assert container["image"].startswith(f"{mirror}/") and "python" in container["image"]
    assert PYTHON_IMAGE in {each.image for each in plan.copies}


def _run(*edits: Edit) -> str:
    return environment_plan(*BEFORE, *edits).jobs["t5-large"].run


def test_another_source_is_another_run_and_another_check_is_none() -> None:
    first = _run(at(f"{JOB}.weights", WEIGHTS))
    other = at(f"{JOB}.weights.q.from_huggingface.revision", "1" * 40)
    assert len({_run(), first, _run(at(f"{JOB}.weights", WEIGHTS), other)}) == 3
    checked = at(f"{JOB}.weights.q.check", {"files": 14})
    assert _run(at(f"{JOB}.weights", WEIGHTS), checked) == first


def test_plan_says_size_minutes_and_price_and_the_first_step_waits() -> None:
    plan = environment_plan(*BEFORE, at(f"{JOB}.weights", WEIGHTS), at(f"{JOB}.data", SETS))
    [section] = [each for each in text(plan).split("\n\n") if each.startswith("loads\n")]
    [corpus] = [line.split() for line in section.splitlines() if "our-sets" in line]
    # 500 GB at 40 % of the 6.25 Gb/s of an m7i.4xlarge, and 2 minutes for its node.
    assert corpus[:5] == ["s3://our-sets/corpus/", "home/corpus", "500.0", "29", "at"]
    [qwen] = [line.split() for line in section.splitlines() if "Qwen3-8B" in line]
    assert qwen[:5] == ["models/Qwen/Qwen3-8B", "at", "0" * 12, "scratch/models/qwen3-8b", "16.4"]
    late, early = schedule(plan).seconds, schedule(environment_plan(*BEFORE)).seconds
    assert 1500 < late - early < 1800


def test_a_size_that_nobody_knows_is_said_to_be_unknown() -> None:
    unknown = {"c": {name: value for name, value in SETS["c"].items() if name != "check"}}
    shown = text(environment_plan(*BEFORE, at(f"{JOB}.data", unknown)))
    assert "follow from check.bytes" in shown and "?   ?        ?" in shown
