"""How the cluster's endpoint is reached: from the internet, by a tunnel, by a proxy."""

from __future__ import annotations

import json
import shlex
from typing import Any

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at, without

PRIVATE = (at("cluster.endpoint", "private"), without("cluster.public_access_cidrs"))
AGENT = "system-AmazonSSMManagedInstanceCore"


def _server(graph: Graph) -> dict[str, Any]:
    [entry] = json.loads(graph.outputs["kubeconfig"])["clusters"]
    return {
        key: value for key, value in entry["cluster"].items() if "certificate-authority" not in key
    }


def _node_policies(graph: Graph) -> set[str]:
    return {node.name for node in graph.of("RolePolicyAttachment")}


def test_a_private_cluster_has_no_public_endpoint_and_sends_no_ranges() -> None:
    cluster = environment(*PRIVATE, at("cluster.inside_vpc", True))[
        "eks:index:Cluster cluster"
    ].inputs
    assert cluster["endpointPublicAccess"] is False and "publicAccessCidrs" not in cluster


def test_a_private_cluster_is_reached_through_the_tunnel() -> None:
    graph = environment(*PRIVATE, at("cluster.tunnel_port", 8443))
    assert _server(graph) == {"server": "https://127.0.0.1:8443", "tls-server-name": "cluster"}
    assert "https://cluster" in json.dumps(graph["Release karpenter"].inputs), "pods need no tunnel"


def test_a_private_cluster_is_reached_through_the_proxy() -> None:
    graph = environment(*PRIVATE, at("cluster.proxy_url", "http://proxy:3128"))
    assert _server(graph) == {"server": "https://cluster", "proxy-url": "http://proxy:3128"}


def test_a_prepared_tunnel_gives_system_nodes_the_agents_policy_and_nothing_else(
    dev: Graph,
) -> None:
    graph = environment(at("cluster.tunnel_port", 8443))
    assert _node_policies(graph) - _node_policies(dev) == {AGENT}
    assert set(graph.nodes) - set(dev.nodes) == {graph.one("RolePolicyAttachment", AGENT).urn}
    assert _server(graph) == _server(dev) == {"server": "https://cluster"}


def test_sessions_give_nodes_of_pools_the_agents_policy_and_nothing_else(dev: Graph) -> None:
    graph = environment(at("cluster.node_sessions", True))
    pools = AGENT.replace("system", "gpu-nodes")
    assert _node_policies(graph) - _node_policies(dev) == {pools}
    assert set(graph.nodes) - set(dev.nodes) == {graph.one("RolePolicyAttachment", pools).urn}


def test_the_output_opens_the_tunnel_through_a_running_system_node(dev: Graph) -> None:
    graph = environment(at("cluster.tunnel_port", 8443))
    words = shlex.split(graph.outputs["tunnel"])
    assert words[:3] == ["aws", "ssm", "start-session"]
    assert words[-1] == "host=cluster,portNumber=443,localPortNumber=8443"
    group = graph.one("NodeGroup", "system").inputs["nodeGroupName"]
    assert f"Name=tag:eks:nodegroup-name,Values={group}" in graph.outputs["tunnel"]
    assert "tunnel" not in dev.outputs


def test_a_private_endpoint_is_an_update_in_place() -> None:
    """The name of a cluster changes with what replaces it."""
    names = {
        graph["eks:index:Cluster cluster"].inputs["name"]
        for graph in (environment(), environment(*PRIVATE, at("cluster.tunnel_port", 8443)))
    }
    assert len(names) == 1
