"""`trainyard check --live` of an existing cluster in which others give GPUs to nodes."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest

from tests.support.existing_cluster import IN_CLUSTER, NAME
from tests.support.stackfile import environment_plan
from trainyard.live.existing.device_plugins import OPERATOR, plugin_findings
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import OwnerFound, PluginFound

OWNER = OwnerFound(release=("gpus", "platform"), managers=("helm",))
PLUGIN = PluginFound(
    name="gpus-nvdp",
    namespace="platform",
    images=("nvcr.io/nvidia/k8s-device-plugin:v0.17.0",),
    tolerated=("CriticalAddonsOnly", "nvidia.com/gpu"),
    owner=OWNER,
)


def said(
    *plugins: PluginFound, operator: bool = False, standing: tuple[str, ...] = ()
) -> list[str]:
    told = Mock(spec=Account)
    told.cluster_objects.return_value = {OPERATOR: OWNER} if operator else {}
    told.device_plugins.return_value = list(plugins)
    told.cluster_nodes.return_value = [*standing]
    plan = environment_plan(*IN_CLUSTER)
    return [str(finding) for finding in plugin_findings(told, plan, NAME)]


def test_a_plugin_under_another_name_is_found() -> None:
    [warning] = said(PLUGIN)
    assert warning.startswith(
        "environment.cluster.name: DaemonSet gpus-nvdp in platform of research"
    )
    assert "nvcr.io/nvidia/k8s-device-plugin:v0.17.0" in warning


def test_one_that_tolerates_everything_is_found() -> None:
    assert len(said(replace(PLUGIN, tolerated=("",)))) == 1


@pytest.mark.parametrize(
    "plugin",
    [
        replace(PLUGIN, tolerated=("CriticalAddonsOnly",)),
        replace(PLUGIN, name="neuron", images=("public.ecr.aws/neuron/neuron-device-plugin:2",)),
        replace(PLUGIN, name="nvidia-device-plugin", namespace="kube-system"),
    ],
    ids=["not on tainted nodes", "of another device", "the stack's own"],
)
def test_one_that_does_not_meet_the_stacks_own_is_no_warning(plugin: PluginFound) -> None:
    assert said(plugin) == []


OF_OPERATOR = replace(
    PLUGIN,
    name="nvidia-device-plugin-daemonset",
    namespace="gpu-operator",
    selected=("nvidia.com/gpu.deploy.device-plugin",),
)


def test_the_gpu_operator_leaves_alone_what_pools_launch() -> None:
    assert said(OF_OPERATOR, operator=True) == []


def test_nodes_that_stood_before_pools_had_the_label_get_the_command() -> None:
    [warning] = said(OF_OPERATOR, operator=True, standing=("ip-10-0-0-7", "ip-10-0-0-8"))
    command = "kubectl label node ip-10-0-0-7 ip-10-0-0-8 nvidia.com/gpu.deploy.operands=false"
    assert "NVIDIA's GPU Operator" in warning and f"Run `{command}`" in warning


def test_another_plugin_beside_the_operator_is_found() -> None:
    [warning] = said(PLUGIN, OF_OPERATOR, operator=True)
    assert "DaemonSet gpus-nvdp" in warning


def test_a_cluster_that_does_not_answer_is_one_warning() -> None:
    told = Mock(spec=Account)
    told.cluster_objects.side_effect = NotAnswered("https://x: ConnectTimeoutError")
    [warning] = plugin_findings(told, environment_plan(*IN_CLUSTER), NAME)
    assert "is not checked: https://x: ConnectTimeoutError" in str(warning)
