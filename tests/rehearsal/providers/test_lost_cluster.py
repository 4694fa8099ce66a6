"""Somebody deletes the cluster by hand. Its objects are gone, and Pulumi can neither read nor delete them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from development import engine, steps
from development.progress import Display
from rehearsal import paths
from rehearsal.providers import install
from tests.support.alone import NO_OBJECTS, SILENT, Alone, alone
from tests.support.patience import until

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not (paths.BIN / "pulumi").exists(), reason="pulumi is not built"),
]
REFRESH = ("refresh", "--yes", "--skip-preview")
KUBERNETES = ("resource", "kubernetes")


@pytest.fixture(scope="module")
def place() -> Iterator[Alone]:
    with alone("dev") as made:
        assert made.do("up") == 0, made.log.read_text()
        yield made


def deleted_by_hand(place: Alone) -> None:
    eks = place.account.client("eks", region=place.stack.settings["aws:region"])
    made = {each["type"]: each for each in place.state()}
    cluster = made["aws:eks/cluster:Cluster"]["id"]
    group = made["aws:eks/nodeGroup:NodeGroup"]["id"].partition(":")[2]
    eks.delete_nodegroup(clusterName=cluster, nodegroupName=group)
    until(lambda: not there(place, "eks-nodegroup"))
    eks.delete_cluster(name=cluster)
    until(lambda: not there(place, "eks-cluster"))


def there(place: Alone, kind: str) -> bool:
    return any(one["type"] == kind for one in place.left())


def of_kubernetes(place: Alone) -> list[str]:
    return [each["type"] for each in place.state() if each["type"].startswith("kubernetes:")]


def test_what_was_in_a_cluster_that_is_gone_leaves_the_state_and_up_makes_it_anew(
    place: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted_by_hand(place)
    with monkeypatch.context() as gone:
        place.answers(SILENT)
        ours = (install.PLUGINS[KUBERNETES][0], "rehearsal.providers.kubernetes.provider")
        gone.setattr(install, "PLUGINS", install.PLUGINS | {KUBERNETES: ours})
        display = Display()
        engine.prepare(place.stack, display.reporter("engine"))
        assert "unreachable cluster" in place.pulumi(*REFRESH)
        assert of_kubernetes(place)
        assert steps.repair(place.stack, display) == 1
        said = (paths.LOGS / "repair.log").read_text()
        assert "PULUMI_K8S_DELETE_UNREACHABLE=true pulumi refresh --stack dev" in said
        said = place.pulumi(*REFRESH, PULUMI_K8S_DELETE_UNREACHABLE="true")
        assert "error:" not in said and not of_kubernetes(place), said
    place.answers(NO_OBJECTS)
    assert place.do("up") == 0, place.log.read_text()
    assert of_kubernetes(place)
    assert place.do("down") == 0, place.left()
