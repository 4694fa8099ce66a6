"""Data come from a bucket of the account onto a store before the first GPU node is asked for, by the real
controllers: also where `up` is killed while they load, and never where a figure is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal import processes
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

BUCKET, REGION = "trainyard-world-sets", "us-east-2"
FILES = {"a.bin": b"a" * 70_000, "deep/b.bin": b"b" * 5, "empty": b""}
MINUTES = 10
SCRIPT = """\
cd /home/team/sets/corpus
test -f .trainyard-whole
test "$(find * -type f | wc -l)" = 3
wc -c < a.bin | grep -qx 70000
echo read it all
"""
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"


def stack(**check: int) -> str:
    """The stack file, with a job that reads the data. `check`: figures that they must have; none: no job."""
    job: Object = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": IMAGE,
        "script": SCRIPT,
        "shared_memory_gib": 8,
        "wait": "complete",
        "storage": {"home": {"path": "/home/team"}},
        "data": {
            "corpus": {
                "from_s3": {"address": f"s3://{BUCKET}/corpus/"},
                "store": "home",
                "directory": "sets/corpus",
                "check": check,
            }
        },
    }
    config = with_l4(
        storage={"home": {"efs": {}, "data": "delete"}}, jobs={"train": job} if check else {}
    )
    pools = config["trainyard:environment"]["pools"]
    pools["cpu"] = {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}
    return yaml.safe_dump({"config": config})


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with rehearsing("loads", {"Pulumi.loads.yaml": stack()}) as made:
        assert made.do("up", "--stack", "loads") == 0, made.log.read_text()
        s3 = made.aws("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        for name, content in FILES.items():
            s3.put_object(Bucket=BUCKET, Key=f"corpus/{name}", Body=content)
        yield made


def write(harness: Harness, **check: int) -> None:
    (harness.checkout / "Pulumi.loads.yaml").write_text(stack(**check))


def loads(harness: Harness) -> list[Object]:
    return harness.get("jobs.batch --namespace training --selector trainyard.io/load")["items"]


def types(harness: Harness) -> dict[str, list[str]]:
    """Type of an instance of Karpenter → when each was launched."""
    found: dict[str, list[str]] = {}
    tagged = [{"Name": "tag-key", "Values": ["karpenter.sh/nodepool"]}]
    for group in harness.aws("ec2").describe_instances(Filters=tagged)["Reservations"]:
        for one in group["Instances"]:
            found.setdefault(one["InstanceType"], []).append(f"{one['LaunchTime']:%FT%TZ}")
    return found


def runs(harness: Harness) -> list[Object]:
    return harness.get("trainjobs --namespace training")["items"]


def test_a_wrong_figure_asks_for_no_gpu(harness: Harness) -> None:
    write(harness, files=4)
    assert harness.do("up", "--stack", "loads") != 0
    assert "files 3, and the stack file says check.files: 4" in harness.said("up")
    assert runs(harness) == [] and set(types(harness)) == {"m7i.4xlarge"}


def test_an_up_that_is_killed_while_data_load_goes_on_in_the_next(harness: Harness) -> None:
    write(harness, files=3, bytes=70_005)
    killed = harness.start("up", "--stack", "loads")
    wrong = {each["metadata"]["name"] for each in loads(harness)}
    seen = processes.wait(
        lambda: bool({each["metadata"]["name"] for each in loads(harness)} - wrong),
        MINUTES * 60,
        0.3,
    )
    assert seen, harness.log.read_text()
    until(lambda: harness.kill(*VICTIMS["engine"]))
    assert killed.wait() != 0 and runs(harness) == []
    assert harness.do("up", "--stack", "loads") == 0, harness.log.read_text()
    log = harness.shell(
        "kubectl logs --namespace training --selector jobset.sigs.k8s.io/jobset-name=train --tail -1"
    )
    assert "read it all" in log


def test_the_bytes_were_on_the_store_before_the_first_gpu_node(harness: Harness) -> None:
    """RFC 3339 in UTC: texts sort as times."""
    ends: list[Any] = [
        each["status"]["completionTime"]
        for each in loads(harness)
        if each["status"].get("succeeded")
    ]
    [loaded], [run] = ends, runs(harness)
    [gpu] = types(harness)["g6.12xlarge"]
    assert loaded <= run["metadata"]["creationTimestamp"] <= gpu and loaded < gpu


def test_another_up_changes_nothing(harness: Harness) -> None:
    before = harness.get("jobs.batch --namespace training")["items"]
    assert harness.do("up", "--stack", "loads") == 0, harness.log.read_text()
    assert harness.get("jobs.batch --namespace training")["items"] == before
    assert len(types(harness)["g6.12xlarge"]) == 1
