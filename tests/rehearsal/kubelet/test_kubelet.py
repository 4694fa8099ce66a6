"""Nodes without a world: user data, capacity, environment, devices, images, host names."""

from __future__ import annotations

import base64
import json
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.kubelet import images, kubelet, node, process
from rehearsal.kubelet.aws import plain
from rehearsal.kubelet.container import Container, Probe, refused
from rehearsal.kubelet.environment import NotReady, environment, expand, quantity
from rehearsal.kubelet.node import EFA, GPU
from tests.support.patience import until
from tests.support.ports import free_port

AUTHORITY = base64.b64encode(b"ca").decode()
PART = (
    "--//\nContent-Type: application/node.eks.aws\n\napiVersion: node.eks.aws/v1alpha1\nkind:"
    " NodeConfig\nspec:\n"
)
USER_DATA = (
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
    + PART
    + f"  cluster: {{name: c, apiServerEndpoint: 'https://a', certificateAuthority: {AUTHORITY}}}\n"
    "  kubelet: {config: {maxPods: 20, registerWithTaints: [{key: a, effect: NoSchedule}]}}\n"
    + PART
    + "  kubelet: {config: {registerWithTaints: [{key: b, effect: NoExecute}]}, "
    'flags: ["--node-labels=x=1,y=2"]}\n--//--\n'
)
INSTANCE = {
    "instanceId": "i-1",
    "privateDnsName": "ip-1",
    "instanceType": "g6e.48xlarge",
    "architecture": "x86_64",
    "placement": {"availabilityZone": "ap-northeast-2a", "availabilityZoneId": "apne2-az1"},
    "networkInterfaceSet": [{"interfaceType": kind} for kind in ("efa", "efa-only", "interface")],
}
KIND = {
    "vCpuInfo": {"defaultVCpus": "192"},
    "memoryInfo": {"sizeInMiB": "1572864"},
    "gpuInfo": {"gpus": [{"count": "8"}]},
    "instanceStorageInfo": {"totalSizeInGB": "7600"},
    "networkInfo": {"maximumNetworkInterfaces": "15", "ipv4AddressesPerInterface": "50"},
}


def container(name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "pytorch/pytorch:2.7", **more}


def pod(*containers: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"a/b": "c"}},
        "spec": {"containers": list(containers), "nodeName": "ip-1"},
    }


def held(*_: Any) -> dict[str, bytes]:
    return {"k": b"v"}


def test_every_node_config_of_the_user_data_counts() -> None:
    config = node.node_config(USER_DATA)
    assert (config.cluster, config.endpoint, config.authority) == ("c", "https://a", b"ca")
    assert node.labels(config, INSTANCE)["x"] == "1"
    assert [t["key"] for t in node.node(config, INSTANCE)["spec"]["taints"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("instance_type", "layers"),
    [("g6e.48xlarge", 3), ("p6-b200.48xlarge", 4), ("p5.4xlarge", 0), ("m7i.large", 0)],
)
def test_a_node_has_labels_of_the_network_where_ec2_names_its_parts(
    instance_type: str, layers: int
) -> None:
    found = node.labels(node.node_config(USER_DATA), INSTANCE | {"instanceType": instance_type})
    names = [key for key in found if key.startswith("topology.k8s.aws/network-node-layer-")]
    assert len(names) == layers


def test_a_script_beside_the_node_config_is_left_alone() -> None:
    script = (
        '--//\nContent-Type: text/x-shellscript; charset="us-ascii"\n\n#!/bin/bash\nkind:'
        " NodeConfig\n"
    )
    assert node.node_config(USER_DATA.replace(PART, script + PART, 1)) == node.node_config(
        USER_DATA
    )


SETTINGS = f"""[settings]
[settings.bootstrap-commands]
[settings.bootstrap-commands.000-mount-instance-storage]
commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind']]
mode = 'always'
essential = true

[settings.container-runtime]
snapshotter = 'soci'

[settings.kubernetes]
api-server = 'https://a'
cluster-certificate = '{AUTHORITY}'
cluster-name = 'c'
max-pods = 20

[settings.kubernetes.node-labels]
x = '1'
y = '2'

[settings.kubernetes.node-taints]
a = ['true:NoSchedule']
b = [':NoExecute']
"""
"""As Karpenter 1.14 writes them."""


def test_a_node_with_bottlerocket_reads_its_settings() -> None:
    config = node.node_config(SETTINGS)
    assert (config.cluster, config.endpoint, config.authority) == ("c", "https://a", b"ca")
    assert node.labels(config, INSTANCE)["y"] == "2"
    assert node.node(config, INSTANCE)["spec"]["taints"] == [
        {"key": "a", "value": "true", "effect": "NoSchedule"},
        {"key": "b", "value": "", "effect": "NoExecute"},
    ]
    capacity = node.capacity(config, KIND, 204)
    assert (capacity["pods"], capacity["ephemeral-storage"]) == ("20", "7600G")
    assert config.bottlerocket and not node.node_config(USER_DATA).bottlerocket


def test_a_node_with_bottlerocket_has_the_disk_of_its_volumes_where_nothing_joins_others() -> None:
    alone = SETTINGS.replace("'ephemeral-storage'", "'other'")
    assert node.capacity(node.node_config(alone), KIND, 204)["ephemeral-storage"] == "204Gi"


def test_a_node_with_bottlerocket_and_without_a_cluster_does_not_join() -> None:
    with pytest.raises(node.NoNodeConfig, match=r"cluster\.name"):
        node.node_config(SETTINGS.replace("cluster-name", "other"))


@pytest.mark.parametrize("text", ["", "#!/bin/bash\necho hello\n"])
def test_an_instance_without_a_node_config_says_what_is_missing(text: str) -> None:
    with pytest.raises(node.NoNodeConfig, match=r"cluster\.name, cluster\.apiServerEndpoint"):
        node.node_config(text)


def test_efa_devices_are_the_interfaces_of_the_instance_and_gpus_those_of_the_type() -> None:
    assert node.devices(INSTANCE, KIND) == {GPU: 8, EFA: 2}


def test_a_node_keeps_something_for_the_kubelet() -> None:
    config = node.node_config(USER_DATA)
    capacity = node.capacity(config, KIND, 100)
    assert capacity["pods"] == "20" and capacity["ephemeral-storage"] == "100Gi"
    assert node.allocatable(capacity)["cpu"] == "191450m"
    assert quantity(node.allocatable(capacity)["memory"]) < quantity(capacity["memory"])


def test_pods_are_limited_by_addresses_where_the_user_data_says_nothing() -> None:
    config = node.node_config(USER_DATA.replace("maxPods: 20, ", ""))
    assert node.capacity(config, KIND, 100)["pods"] == "737"


@pytest.mark.parametrize(
    ("text", "value"), [("64Gi", 64 * 2**30), ("1500m", 1.5), ("2k", 2000), ("1e3", 1000), (5, 5)]
)
def test_quantities(text: str, value: float) -> None:
    assert quantity(text) == value


def test_variables_are_expanded_from_those_before_and_unknown_ones_stay() -> None:
    assert expand("$(A)-$$(A)-$(B)", {"A": "1"}) == "1-$(A)-$(B)"
    env = container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}])
    env = environment(pod(), env, {}, {}, held)
    assert env == {"A": "1", "B": "12"}


def test_fields_and_resources_of_the_pod_reach_its_environment() -> None:
    fields = {"L": "metadata.labels['a/b']", "N": "spec.nodeName", "NS": "metadata.namespace"}
    env = [{"name": k, "valueFrom": {"fieldRef": {"fieldPath": v}}} for k, v in fields.items()]
    env.append(
        {
            "name": "M",
            "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}},
        }
    )
    spec = container(env=env, resources={"limits": {"memory": "1Gi"}})
    assert environment(pod(spec), spec, {}, {}, held) == {
        "L": "c",
        "N": "ip-1",
        "NS": "n",
        "M": "1024",
    }


@pytest.mark.parametrize("kind", ["configMap", "secret"])
def test_keys_of_objects_reach_the_environment_and_a_missing_one_is_named(kind: str) -> None:
    def asked(key: str, **more: Any) -> dict[str, str]:
        spec = container(
            env=[{"name": "T", "valueFrom": {f"{kind}KeyRef": {"name": "o", "key": key, **more}}}]
        )
        return environment(pod(spec), spec, {}, {}, held)

    assert asked("k") == {"T": "v"} and asked("other", optional=True) == {}
    with pytest.raises(
        NotReady, match=f"^couldn't find key other in {kind[0].upper()}{kind[1:]} n/o$"
    ):
        asked("other")


def test_what_the_kubelet_does_not_know_is_named() -> None:
    spec = container(env=[{"name": "T", "valueFrom": {"fileKeyRef": {"key": "TOKEN"}}}])
    with pytest.raises(NotReady, match=r"does not know valueFrom\.fileKeyRef"):
        environment(pod(spec), spec, {}, {}, held)
    asks = {
        "readinessProbe": {"exec": {"command": ["true"]}},
        "livenessProbe": {"httpGet": {"scheme": "HTTP"}},
    }
    spec = {
        "initContainers": [container(restartPolicy="Always")],
        "containers": [container(startupProbe={"httpGet": {}}, **asks)],
    }
    assert refused(spec) == [
        "startupProbe",
        "initContainers that go on",
        "readinessProbe by anything but HTTP and TCP",
    ]


@pytest.mark.parametrize(
    ("image", "binary"),
    [
        ("public.ecr.aws/karpenter/controller:1.14.1@sha256:abc", "karpenter"),
        ("public.ecr.aws/karpenter/controller:1.15.2", "karpenter-1.15"),
        ("registry.k8s.io/jobset/jobset:v0.10.1", "jobset"),
        ("registry.k8s.io/jobset/jobset:v0.12.0", "jobset-0.12"),
        ("ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.3.0", "trainer-2.3"),
        (
            "123.dkr.ecr.x.amazonaws.com/mirror/kubeflow/trainer/trainer-controller-manager:v2.1.0",
            "trainer",
        ),
    ],
)
def test_controllers_are_known_by_their_repository_behind_any_mirror(
    image: str, binary: str
) -> None:
    found = images.program(image)
    assert found and found.binary == binary


def test_other_images_are_not_programs() -> None:
    assert images.program("registry:5000/notkarpenter/controllers:1") is None
    assert images.program("ghcr.io/kubeflow/trainer/trainer-controller-manager:v2.2.1") is None


def test_a_volume_at_dev_shm_replaces_the_default() -> None:
    mounts = process.mounts(None, [process.Mount(target="/dev/shm", size="1g")], hosts="/h")
    assert [m.size for m in mounts if m.target == "/dev/shm"] == ["1g"]


def list_images(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two images that somebody builds."""
    monkeypatch.setattr(paths, "STATE", state)
    told = {
        "trainyard/torch-cpu": {},
        "trainyard/ddp": {"/workspace/train.py": str(state / "train.py")},
    }
    (state / "images.json").write_text(json.dumps({"images": told}))


@pytest.mark.parametrize(
    ("image", "real"),
    [
        ("trainyard/torch-cpu:2.15", True),
        ("123.dkr.ecr.x.amazonaws.com/mirror/trainyard/ddp@sha256:abc", True),
        ("pytorch/pytorch:2.4.1-cuda11.8-cudnn9-runtime", False),
        ("mytrainyard/ddp:1", False),
        ("ddp:1", False),
    ],
)
def test_only_images_that_are_listed_get_the_real_torch(
    image: str, real: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_images(tmp_path, monkeypatch)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: object())
    assert (f"{images.TOOLS_AT}/torchrun" not in images.training_tools(image)) == real
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert f"{images.TOOLS_AT}/torchrun" in images.training_tools(image)


def test_what_is_listed_is_in_its_image_unless_a_volume_hides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_images(tmp_path, monkeypatch)
    files = images.files("trainyard/ddp:1")
    assert set(files) == {"/workspace/train.py"}
    assert images.files("trainyard/torch-cpu:1") == images.files("other/ddp:1") == {}
    assert files["/workspace/train.py"] in [
        m.source for m in process.mounts(None, [], files, hosts="/h")
    ]
    at = process.Mount(target="/workspace", source="/x")
    hidden = process.mounts(None, [at], files, hosts="/h")
    assert [m.target for m in hidden if m.target.startswith("/workspace")] == ["/workspace"]


def test_a_failing_container_is_restarted_as_its_policy_says() -> None:
    codes = iter([3, 0])

    class Ended(process.Simulated):
        def poll(self) -> int | None:
            return next(codes)

    made = Container(
        container(), pod="p_n(u)", policy="OnFailure", start=lambda _: Ended(None), address=str
    )
    assert [made.tick() for _ in range(2)] == [
        None,
        ("BackOff", "Back-off restarting failed container main in pod p_n(u)"),
    ]
    assert made.exit_code is None and made.status()["state"]["waiting"] == {
        "reason": "CrashLoopBackOff",
        "message": "back-off 1s restarting failed container=main pod=p_n(u)",
    }
    made._due = 0
    made.tick()
    made.tick()
    assert made.exit_code == 0 and made.status()["restartCount"] == 1


def test_a_container_that_is_stopped_between_two_runs_ends_as_the_last_one_did() -> None:
    class Ended(process.Simulated):
        def poll(self) -> int | None:
            return 3

    made = Container(
        container(), pod="p", policy="OnFailure", start=lambda _: Ended(None), address=str
    )
    made.tick()
    made.tick()
    assert made.exit_code is None
    made.stop(0)
    assert made.exit_code == 3, "a gang whose pod was deleted then had Succeeded"


def test_an_image_that_is_not_there_is_told_as_a_kubelet_tells_it() -> None:
    def absent(_: Container) -> process.Simulated:
        raise NotReady("i: not found", "ErrImagePull")

    made = Container(container(), pod="p", policy="Never", start=absent, address=str)
    assert made.tick() == ("Failed", 'Failed to pull image "pytorch/pytorch:2.7": i: not found')
    made.tick()
    words = 'Back-off pulling image "pytorch/pytorch:2.7": ErrImagePull: i: not found'
    assert made.status()["state"]["waiting"] == {"reason": "ImagePullBackOff", "message": words}


def test_what_an_image_may_be_called() -> None:
    good = [
        "pytorch/pytorch",
        "public.ecr.aws/a/b-c:2.8.0-gpu@sha256:" + "0" * 64,
        "localhost:5000/a__b:1",
    ]
    bad = ["pytorch:2:7", "PyTorch", "https://ghcr.io/a", "team//a", "a/b:", "a b"]
    assert [name for name in good + bad if kubelet.REFERENCE.fullmatch(name)] == good


def test_answers_of_ec2_become_plain_data() -> None:
    from xml.etree import ElementTree

    text = '<R xmlns="http://x"><set><item><a>1</a></item></set><empty/><tags><item>t</item></tags></R>'
    assert plain(ElementTree.fromstring(text)) == {
        "set": [{"a": "1"}],
        "empty": None,
        "tags": ["t"],
    }


def test_a_probe_by_tcp_passes_while_the_port_is_open() -> None:
    port = free_port()
    spec = container(
        readinessProbe={
            "tcpSocket": {"port": port},
            "periodSeconds": 0,
            "timeoutSeconds": 1,
            "failureThreshold": 1,
        }
    )
    assert refused({"containers": [spec]}) == []
    probe = Probe(spec, "readinessProbe", "127.0.0.1")
    assert probe.tick() is False
    with socket.create_server(("127.0.0.1", port)):
        assert probe.tick() is True


def test_a_stand_in_is_found_where_a_runtime_calls_it() -> None:
    assert images.at_hand(["/usr/sbin/sshd", "-De"]) == [f"{images.TOOLS_AT}/sshd", "-De"]
    assert images.at_hand(["/manager"]) == ["/manager"] and images.at_hand([]) == []


def _kubelet(api: object) -> kubelet.Kubelet:
    rest = ("account", "world", "instance", "config", "capacity", "devices")
    return kubelet.Kubelet(**dict.fromkeys(rest), api=api, address="")  # pyright: ignore


def test_a_kubelet_whose_connection_is_dead_for_a_while_speaks_again() -> None:
    api = object()
    made = _kubelet(api)
    made.fall_silent(0.2)
    assert made.api is not api and made._dead
    until(lambda: made.api is api)
    assert not made._dead


def test_a_kubelet_that_dies_while_it_is_silent_stays_dead() -> None:
    made = _kubelet(object())
    made.fall_silent(0.1)
    made.die()
    dead = made.api
    time.sleep(0.3)
    assert made.api is dead and made._dead
