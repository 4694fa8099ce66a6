"""What a destroy keeps goes by the commands that are printed, typed as they are, with the genuine AWS CLI and engine
against the rehearsal's account; and then nothing is left."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import pytest
import yaml

from development import engine
from rehearsal import environment, paths
from tests.support.alone import LEFT, Alone, alone
from tests.support.recording import stack_values
from tests.support.stackfile import ENVIRONMENT
from trainyard.operations.recovery import kept

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
LINK = {"s3": "s3://our-data/in/", "path": "/in", "auto_import": ["NEW", "CHANGED", "DELETED"]}
STORES = {
    "scratch": {
        "lustre": {
            "capacity_gib": 4800,
            "throughput_mbps_per_tib": 250,
            "repositories": {"in": {**LINK, "delete_data_in_filesystem": True}},
        }
    },
    "home": {"efs": {"backup_days": 7}},
    "models": {"s3": {"versioning": True}},
}
KEPT = ["Bucket", "DataRepositoryAssociation", "FileSystem", "LustreFileSystem", "Repository"]


def _settings() -> dict[str, Any]:
    settings = stack_values("dev")
    settings[ENVIRONMENT] |= {"storage": STORES, "registries": {"train": {}}, "jobs": {}}
    return settings


def _fill(place: Alone) -> None:
    """Data in the stores that AWS does not delete with them."""
    [bucket] = [each["id"] for each in place.state() if each["type"] == "aws:s3/bucket:Bucket"]
    s3 = place.account.client("s3")
    s3.delete_bucket_policy(Bucket=bucket)  # moto reads no condition of it, and would refuse all
    for number in range(3):
        s3.put_object(Bucket=bucket, Key="a key/with a space", Body=str(number).encode())
    s3.put_object(Bucket=bucket, Key="gone", Body=b"x")
    s3.delete_object(Bucket=bucket, Key="gone")


def test_what_is_kept_goes_by_the_commands_that_are_printed() -> None:
    settings = _settings()
    with alone("dev") as place:
        place.account.client("s3").create_bucket(
            Bucket="our-data",
            CreateBucketConfiguration={"LocationConstraint": settings["aws:region"]},
        )
        before = {thing["id"] for thing in place.left()}
        (place.checkout / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": settings}))
        assert place.do("up") == 0, place.log.read_text()
        assert not kept.nothing_else(place.state()) and engine.is_in_a_cluster(place.stack)
        _fill(place)
        assert place.do("down") == LEFT, place.log.read_text()
        assert kept.nothing_else(place.state()) and not engine.is_in_a_cluster(place.stack)
        found = kept.kept(place.state())
        titles = sorted(kept.line(each).partition(" ")[0] for each in found)
        assert titles == [*KEPT, "Vault"]
        for command, _ in kept.ways(found, destroy="pulumi destroy --yes --stack dev"):
            _type(place, command)
        assert {thing["id"] for thing in place.left()} == before
        assert place.state() == []


def _type(place: Alone, command: str) -> None:
    """A command in a shell in which `make env` has been evaluated."""
    variables = environment.complete(engine.variables(place.stack))
    path = f"{engine.own_pulumi()}:{environment.VENV}:{variables['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=place.checkout,
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
