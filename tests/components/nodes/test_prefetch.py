"""What pulls the image of a job while its node starts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, at, environment_plan
from trainyard.objects.jobs.pod_template import POOL


@pytest.fixture(scope="module")
def daemons() -> dict[str, Any]:
    return _deployed({"g6e": None})["DaemonSet g6e-images"].inputs


def _deployed(prefetch: dict[str, list[str] | None]) -> Graph:
    def edit(values: dict[str, Any]) -> None:
        for pool, images in prefetch.items():
            if images is not None:
                at(f"pools.{pool}.prefetch", images)(values[ENVIRONMENT])

    return deploy("dev", edit)


def test_nodes_of_a_pool_sleep_in_the_image_of_its_jobs_and_other_pools_in_none(
    daemons: dict[str, Any],
) -> None:
    pod = daemons["spec"]["template"]["spec"]
    plan = environment_plan().pools["g6e"]
    assert [c["image"] for c in pod["containers"]] == list(plan.images) and len(plan.images) == 1
    assert pod["nodeSelector"] == {POOL: "g6e"}
    assert [d.name for d in _deployed({"h100": ["a:1", "b:2"], "g6e": []}).of("DaemonSet")] == [
        "efa-device-plugin",
        "h100-images",
    ]


def test_its_pods_stay_on_a_tainted_node_only_until_the_node_goes(daemons: dict[str, Any]) -> None:
    pod = daemons["spec"]["template"]["spec"]
    assert {t["key"] for t in pod["tolerations"]} == {"nvidia.com/gpu", POOL}, (
        "one that tolerates everything is never drained"
    )
    assert pod["terminationGracePeriodSeconds"] == 1


def test_an_image_may_do_nothing_there_and_takes_nothing_from_the_job(
    daemons: dict[str, Any],
) -> None:
    pod = daemons["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False and "hostNetwork" not in pod
    [container] = pod["containers"]
    held = container["securityContext"]
    assert held["runAsUser"] == 65534 and held["capabilities"] == {"drop": ["ALL"]}
    assert held["readOnlyRootFilesystem"] is True and held["allowPrivilegeEscalation"] is False
    assert "resources" not in container
    assert {e["name"]: e["value"] for e in container["env"]} == {"NVIDIA_VISIBLE_DEVICES": "void"}


def test_up_does_not_wait_for_an_image_that_cannot_be_pulled(daemons: dict[str, Any]) -> None:
    assert daemons["metadata"]["annotations"] == {"pulumi.com/skipAwait": "true"}
    assert daemons["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "100%"}
