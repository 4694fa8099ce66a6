"""Where the plugins of devices run."""

from __future__ import annotations

from tests.support.recording import deploy
from tests.support.stackfile import ENVIRONMENT, at


def test_the_plugin_of_efa_comes_to_each_node_with_efa() -> None:
    """Without it a CPU node that was launched for a pod with EFA never counts as initialized, and stays."""
    cpu = at("pools.cpu", {"instance_types": ["c7i.48xlarge"], "max_nodes": 2})
    graph = deploy("dev", lambda values: cpu(values[ENVIRONMENT]))
    pod = graph["DaemonSet efa-device-plugin"].inputs["spec"]["template"]["spec"]
    assert "c7i.48xlarge" in str(pod["affinity"])
    tolerated = {(each["key"], each["effect"]) for each in pod["tolerations"]}
    pools = {pool.name: pool.inputs["spec"]["template"]["spec"] for pool in graph.of("NodePool")}
    assert "cpu-pool" in pools
    for name, spec in pools.items():
        assert {(each["key"], each["effect"]) for each in spec["taints"]} <= tolerated, name


def test_a_node_that_is_not_ready_holds_up_no_update_of_the_plugins() -> None:
    graph = deploy("dev")
    efa = graph["DaemonSet efa-device-plugin"].inputs
    assert efa["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"
    assert efa["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "10%"
    nvidia = graph["Release nvidia-device-plugin"].inputs
    assert nvidia["skipAwait"] is True
    assert nvidia["values"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "10%"
