"""Nodes and pods against a real control plane: instances boot, join, run pods as processes, fail
and vanish."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from rehearsal.toolchain.programs import DEFAULT_KUBERNETES
from tests.rehearsal.kubelet_world import Client
from tests.support.patience import until

pytestmark = pytest.mark.world
DAEMONS = {
    "aws-node": "602401143452.dkr.ecr.ap-northeast-2.amazonaws.com/amazon-k8s-cni:v1.20",
    "agent": "602401143452.dkr.ecr.ap-northeast-2.amazonaws.com/eks/eks-pod-identity-agent:v1.3",
    "nvidia": "nvcr.io/nvidia/k8s-device-plugin:v0.18.0",
    "fsx-csi-node": "602401143452.dkr.ecr.ap-northeast-2.amazonaws.com/eks/aws-fsx-csi-driver:v1.6",
    "s3-csi-node": "602401143452.dkr.ecr.ap-northeast-2.amazonaws.com/eks/aws-mountpoint-s3-csi-driver:v2.7",
}


def lustre(id_: str, lifecycle: str = "AVAILABLE") -> dict[str, Any]:
    """A file system as FSx describes it."""
    return {
        "Lifecycle": lifecycle,
        "DNSName": f"{id_}.fsx.ap-northeast-2.amazonaws.com",
        "LustreConfiguration": {"MountName": "abcd"},
    }


SHM = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}


class World:
    """What the tests say and ask."""

    def __init__(self, client: Client) -> None:
        self.ask, self.state = client.ask, client.state

    def kubectl(self, *words: str) -> str:
        answer = self.ask("kubectl", *words)
        assert answer["rc"] == 0, answer["err"]
        return answer["out"]

    def apply(self, *objects: dict[str, Any]) -> None:
        """The objects, and a headless service for each Job whose pods name one."""
        objects += tuple(
            headless(one["metadata"]["name"], one["metadata"].get("namespace", "default"))
            for one in objects
            if one["kind"] == "Job"
        )
        answer = self.ask(
            "apply", json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        )
        assert answer["rc"] == 0, answer["err"]

    def get(self, path: str) -> dict[str, Any]:
        return self.ask("get", f"/api/v1/{path}")

    def pods(self, job: str) -> list[dict[str, Any]]:
        return self.get(f"namespaces/default/pods?labelSelector=job-name%3D{job}")["items"]

    def logs(self, job: str) -> str:
        return self.kubectl("logs", "-l", f"job-name={job}", "--tail=100")

    def finished(self, job: str) -> str:
        pods = self.pods(job)
        phases = {pod["status"]["phase"] for pod in pods}
        return (
            phases.pop() if pods and len(phases) == 1 and phases <= {"Succeeded", "Failed"} else ""
        )

    def events(self) -> str:
        return " ".join(e["message"] for e in self.get("namespaces/default/events")["items"])

    def run(self, name: str, command: str, **more: Any) -> str:
        """A Job's log when all its pods have ended."""
        self.apply(job(name, command, **more))
        until(
            lambda: self.finished(name),
            lambda: self.kubectl("describe", "pod", "-l", f"job-name={name}"),
        )
        return self.logs(name)


def account(name: str, namespace: str) -> dict[str, Any]:
    """A service account."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}


def daemon(name: str, image: str) -> dict[str, Any]:
    """A DaemonSet on every node."""
    spec = {
        "tolerations": [{"operator": "Exists"}],
        "hostNetwork": name == "aws-node",
        "serviceAccountName": name,
        "containers": [{"name": "main", "image": image}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def job(
    name: str,
    command: str,
    *,
    nodes: int = 1,
    gpus: int = 0,
    env: dict[str, str] | None = None,
    variables: Sequence[dict[str, Any]] = (),
    spec: dict[str, Any] | None = None,
    backoff: int = 0,
    **container: Any,
) -> dict[str, Any]:
    """An indexed Job whose pods find each other through a headless service's names."""
    main = {
        "name": "node",
        "image": "pytorch/pytorch:2.7.1",
        "command": ["/bin/bash", "-c", command],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {},
        "env": [
            *variables,
            *(
                {"name": k, "value": v}
                for k, v in {"TRAINYARD_STEP_SECONDS": "0.1", **(env or {})}.items()
            ),
        ],
    }
    pod = {
        "restartPolicy": "Never",
        "subdomain": name,
        "terminationGracePeriodSeconds": 2,
        "tolerations": [{"operator": "Exists"}],
        **(spec or {}),
        "containers": [main | container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": nodes,
            "parallelism": nodes,
            "completionMode": "Indexed",
            "backoffLimit": backoff,
            "template": {"spec": pod},
        },
    }


def headless(name: str, space: str = "default") -> dict[str, Any]:
    """The service that gives pods of a subdomain their names."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space},
        "spec": {"clusterIP": "None"},
    }


def dns() -> list[dict[str, Any]]:
    """CoreDNS, as far as a kubelet asks for it: an endpoint of kube-dns."""
    service = headless("kube-dns", "kube-system")
    endpoints = {**service, "kind": "Endpoints"}
    del endpoints["spec"]
    return [service, {**endpoints, "subsets": [{"addresses": [{"ip": "10.244.1.1"}]}]}]


def claim(file_system: str) -> list[dict[str, Any]]:
    """A static volume of a Lustre file system and the claim on it."""
    source = {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": file_system,
        "volumeAttributes": {"dnsname": lustre(file_system)["DNSName"], "mountname": "abcd"},
    }
    return static_claim(file_system, source)


def bucket_claim(name: str, bucket: str, *options: str) -> list[dict[str, Any]]:
    """A static volume of a bucket, with mount options, and the claim on it."""
    source = {
        "driver": "s3.csi.aws.com",
        "volumeHandle": bucket,
        "volumeAttributes": {"bucketName": bucket},
    }
    return static_claim(name, source, mountOptions=list(options))


def static_claim(file_system: str, source: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": file_system},
            "spec": common | {"capacity": {"storage": "1Ti"}, "csi": source} | more,
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": file_system},
            "spec": (
                common | {"resources": {"requests": {"storage": "1Ti"}}, "volumeName": file_system}
            ),
        },
    ]


def mounted(volume: dict[str, Any], path: str) -> dict[str, Any]:
    """Arguments of job() for one volume."""
    return {
        "spec": {"volumes": [volume]},
        "volumeMounts": [{"name": volume["name"], "mountPath": path}],
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if not (paths.BIN / f"kube-apiserver-{DEFAULT_KUBERNETES}").exists():
        pytest.skip("the toolchain is not built")
    client = Client(tmp_path_factory.mktemp("w"))
    made = World(client)
    for name in ("i-1", "i-2"):
        client.ask("launch", name, 2)
    client.ask("lustre", {"fs-1": lustre("fs-1"), "fs-2": lustre("fs-2", "CREATING")})
    accounts = (account(name, "kube-system") for name in DAEMONS)
    made.apply(*accounts, *(daemon(name, image) for name, image in DAEMONS.items()), *dns())
    until(lambda: made.kubectl("get", "nodes").count(" Ready ") == 2)
    until(lambda: made.kubectl("get", "nodes", "-o", "yaml").count('nvidia.com/gpu: "8"') == 4)
    yield made
    client.close()


def node(world: World, name: str) -> dict[str, Any]:
    return next(
        n for n in world.get("nodes")["items"] if n["spec"]["providerID"].endswith(f"/{name}")
    )


def test_a_node_has_what_its_user_data_and_its_instance_say(world: World) -> None:
    found = node(world, "i-1")
    assert found["metadata"]["labels"]["pool"] == "gpu"
    assert found["metadata"]["labels"]["topology.k8s.aws/zone-id"] == "apne2-az1"
    assert {"key": "karpenter.sh/unregistered", "effect": "NoExecute"} in found["spec"]["taints"]
    assert "vpc.amazonaws.com/efa" not in found["status"]["capacity"], "no EFA plugin runs there"


def test_an_instance_whose_role_has_no_access_entry_does_not_join(world: World) -> None:
    world.ask("launch", "i-stranger")
    log = world.state / "nodes/i-stranger/kubelet.log"
    until(
        lambda: (
            log.exists()
            and "Unable to register node with API server: Unauthorized" in log.read_text()
        )
    )
    assert len(world.get("nodes")["items"]) == 2
    world.ask("vanish", "i-stranger")


def test_a_pod_sees_exactly_the_gpus_it_asks_for(world: World) -> None:
    lines = world.run("gpus", 'echo $(ls /dev | grep "nvidia[0-9]")', nodes=4, gpus=4).splitlines()
    assert lines == ["nvidia0 nvidia1 nvidia2 nvidia3"] * 4


def test_a_job_reads_a_file_of_a_bucket_and_writes_one_only_where_it_may(world: World) -> None:
    keys = dict.fromkeys(("AccessKeyId", "SecretAccessKey", "SessionToken"), "s3-driver")
    world.ask("identities", {"s3-csi-node": keys})
    world.apply(*bucket_claim("filled", "our-corpus"))
    world.apply(*bucket_claim("read", "our-corpus", "allow-other", "read-only"))
    fill, use = (
        mounted({"name": "data", "persistentVolumeClaim": {"claimName": name}}, "/corpus")
        for name in ("filled", "read")
    )
    world.run("fill", "echo one line > /corpus/a.txt", **fill)
    said = world.run("use", "cat /corpus/a.txt; touch /corpus/b.txt 2>&1 || true", **use)
    assert "one line" in said and "Read-only file system" in said


def test_torchrun_on_two_nodes_meets_checkpoints_on_lustre_and_resumes(world: World) -> None:
    world.apply(*claim("fs-1"))
    sample = (
        "git clone https://github.com/gnosia93/training-on-eks /code && cd /code/samples/fsdp &&"
        " pip install -r requirements.txt && torchrun --nproc_per_node=8 --nnodes=2"
        " --rdzv_id=elastic-job --rdzv_backend=c10d --rdzv_endpoint=NAME-0.NAME:29400 t5-fsdp.py"
    )
    storage = {"name": "data", "persistentVolumeClaim": {"claimName": "fs-1"}}
    more = {
        "nodes": 2,
        "gpus": 8,
        "spec": {"volumes": [SHM, storage]},
        "volumeMounts": [
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "data", "mountPath": "/ckpt"},
        ],
    }
    store = {"CHECKPOINT_DIR": "/ckpt"}
    first = world.run(
        "first", sample.replace("NAME", "first"), env=store | {"TRAINYARD_STEPS": "8"}, **more
    )
    assert "[rank 15/16] node first-" in first and "step 8/8: all ranks met" in first, first
    assert world.finished("first") == "Succeeded"
    world.kubectl("delete", "job", "first")
    again = world.run(
        "again", sample.replace("NAME", "again"), env=store | {"TRAINYARD_STEPS": "10"}, **more
    )
    assert "resumed from step 7" in again and "step 10/10" in again, again


def test_gpu_ranks_need_more_shared_memory_than_a_container_has_by_default(world: World) -> None:
    log = world.run("noshm", "touch /x.py; torchrun --nproc_per_node=2 /x.py", gpus=2)
    assert "insufficient shared memory" in log and world.finished("noshm") == "Failed"


def test_a_file_system_that_is_not_available_keeps_its_pods_waiting_and_says_why(
    world: World,
) -> None:
    world.apply(*claim("fs-2"))
    world.apply(
        job(
            "early",
            "true",
            **mounted({"name": "d", "persistentVolumeClaim": {"claimName": "fs-2"}}, "/d"),
        )
    )
    until(lambda: "fs-2 is CREATING" in world.events())
    container = world.pods("early")[0]["status"]["containerStatuses"][0]
    assert container["state"] == {"waiting": {"reason": "ContainerCreating"}}
    world.ask("lustre", {"fs-2": lustre("fs-2")})
    until(lambda: world.finished("early") == "Succeeded")


def test_a_missing_config_map_is_an_event_and_a_new_value_reaches_the_running_pod(
    world: World,
) -> None:
    wait = "touch /c/mine && exit 1; until grep -q two /c/k; do sleep 0.1; done; cat /c/k"
    world.apply(job("config", wait, **mounted({"name": "c", "configMap": {"name": "late"}}, "/c")))
    until(lambda: 'configmap "late" not found' in world.events())
    assert "Running" not in {p["status"]["phase"] for p in world.pods("config")}
    late = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}}
    world.apply(late | {"data": {"k": "one\n"}})
    until(lambda: world.pods("config")[0]["status"]["phase"] == "Running")
    world.apply(late | {"data": {"k": "two\n"}})
    until(lambda: world.finished("config") == "Succeeded")
    assert world.logs("config") == "touch: cannot touch '/c/mine': Read-only file system\ntwo\n"


def test_what_a_container_misses_is_said_and_may_come_later(world: World) -> None:
    token = {"name": "T", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hub"}}
    folder = {"name": "h", "hostPath": {"path": "/data/x", "type": "Directory"}}
    world.apply(
        secret | {"stringData": {"other": "x"}},
        job("keyed", "echo $T", variables=[token]),
        job("hosted", "cat /h/kept", **mounted(folder, "/h")),
    )
    until(lambda: "Error: couldn't find key token in Secret default/hub" in world.events())
    until(lambda: "hostPath type check failed: /data/x is not a directory" in world.events())
    world.apply(secret | {"stringData": {"token": "s3"}})
    for number in (1, 2):
        (world.state / f"nodes/i-{number}/host/data/x").mkdir(parents=True)
        (world.state / f"nodes/i-{number}/host/data/x/kept").write_text("of the node\n")
    until(lambda: world.finished("keyed") == world.finished("hosted") == "Succeeded")
    assert world.logs("keyed") + world.logs("hosted") == "s3\nof the node\n"


def test_a_failing_container_is_started_again_in_place(world: World) -> None:
    twice = "echo run; test -e /keep/again && exit 0; touch /keep/again; exit 7"
    world.run(
        "twice",
        twice,
        backoff=2,  # with 0 the Job counts the restart as its end, and deletes the pod
        **{
            **mounted({"name": "k", "emptyDir": {}}, "/keep"),
            "spec": {"restartPolicy": "OnFailure", "volumes": [{"name": "k", "emptyDir": {}}]},
        },
    )
    status = world.pods("twice")[0]["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1 and status["lastState"]["terminated"]["exitCode"] == 7
    assert world.kubectl("logs", "job/twice", "--previous") == "run\n"


def test_what_is_not_implemented_keeps_the_pod_waiting_and_is_named(world: World) -> None:
    world.apply(job("secret", "true", envFrom=[{"configMapRef": {"name": "c"}}]))
    until(lambda: "does not know envFrom" in world.events())
    assert [p["status"]["phase"] for p in world.pods("secret")] == ["Pending"]
    world.kubectl("delete", "job", "secret")


def test_a_condition_that_somebody_else_writes_is_written_again(world: World) -> None:
    """The node controller sets Ready to False while a node does not answer; with the pod's status
    left like that, an add-on stayed DEGRADED for ever."""
    world.apply(job("steady", "sleep 3210"))

    def ready() -> str:
        conditions = {
            one["type"]: one["status"]
            for pod in world.pods("steady")
            for one in pod["status"].get("conditions", [])
        }
        return conditions.get("Ready", "")

    until(lambda: ready() == "True")
    [pod] = world.pods("steady")
    patch = '{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}'
    name = pod["metadata"]["name"]
    world.kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", patch)
    until(lambda: ready() == "True")
    world.kubectl("delete", "job", "steady")


def test_jobs_of_one_name_in_two_namespaces_meet_each_their_own(world: World) -> None:
    """With the same rendezvous id, as in copies of one sample. One has two ranks, the other four."""
    command = (
        "touch x.py; torchrun --nnodes=2 --nproc_per_node=$RANKS --rdzv_backend=c10d --rdzv_id=one"
        " --rdzv_endpoint=same-0.same:29500 x.py"
    )
    sizes = {"vision": 2, "nlp": 4}
    for space, size in sizes.items():
        made = job("same", command, nodes=2, env={"RANKS": str(size // 2), "TRAINYARD_STEPS": "4"})
        made["metadata"]["namespace"] = space
        world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}, made)
    for space, size in sizes.items():
        world.kubectl("wait", "-n", space, "job/same", "--for=condition=complete", "--timeout=240s")
        said = world.kubectl("logs", "-n", space, "-l", "job-name=same", "--tail=-1")
        assert said.count(f"/{size}] node same-") == size, said


def test_a_pod_that_is_active_for_too_long_fails(world: World) -> None:
    world.run("late", "sleep 60", spec={"activeDeadlineSeconds": 2})
    assert world.pods("late")[0]["status"]["reason"] == "DeadlineExceeded"


def test_init_containers_run_one_after_the_other_and_before_the_others(world: World) -> None:
    keep = mounted({"name": "k", "emptyDir": {}}, "/keep")
    share = {"image": "alpine:3.10", "volumeMounts": keep["volumeMounts"]}
    wait = "until nslookup later-0.later; do sleep 0.2; done; cat /keep/1 > /keep/2"
    first = [
        {"name": "one", "command": ["sh", "-c", "echo 1 > /keep/1"], **share},
        {"name": "two", "command": ["sh", "-c", wait], **share},
    ]
    keep["spec"]["initContainers"] = first
    world.apply(job("order", "cat /keep/2", **keep))
    until(
        lambda: (
            [
                c["state"].keys()
                for pod in world.pods("order")
                for c in pod["status"].get("initContainerStatuses", [])
            ]
            == [{"terminated"}, {"running"}]
        )
    )
    until(
        lambda: "can't resolve 'later-0.later'" in world.kubectl("logs", "job/order", "-c", "two")
    )
    assert world.pods("order")[0]["status"]["phase"] == "Pending"
    world.apply(job("later", "sleep 300"))
    until(lambda: world.finished("order") == "Succeeded")
    assert world.logs("order") == "1\n"
    world.kubectl("delete", "job", "later")


def test_only_a_service_account_with_an_association_gets_credentials(world: World) -> None:
    world.ask(
        "identities",
        {"trained": {"AccessKeyId": "ASIA1", "SecretAccessKey": "s", "SessionToken": "t"}},
    )
    world.apply(account("trained", "default"))
    show = 'echo "key=$AWS_ACCESS_KEY_ID" "$AWS_REGION" "$AWS_ENDPOINT_URL"'
    assert world.run("with", show, spec={"serviceAccountName": "trained"}).startswith(
        "key=ASIA1 ap-northeast-2 http://10."
    )
    assert world.run("without", show).startswith("key= ap-northeast-2 http://10.244.0.1:")


def test_logs_can_be_followed_and_simulated_pods_say_that_they_are(world: World) -> None:
    world.apply(job("talk", "for i in 1 2 3; do echo $i; sleep 0.5; done"))
    began = datetime.now(UTC)
    until(lambda: [p["status"].get("phase") for p in world.pods("talk")] == ["Running"])
    assert world.kubectl("logs", "-f", "job/talk") == "1\n2\n3\n"
    stamped = world.kubectl("logs", "--timestamps", "job/talk").splitlines()
    assert [line.partition(" ")[2] for line in stamped] == ["1", "2", "3"]
    times = [datetime.fromisoformat(line.partition(" ")[0]) for line in stamped]
    assert began < times[0] < times[1] < times[2] < datetime.now(UTC)
    later = (times[2] + timedelta(seconds=1)).isoformat()
    assert world.kubectl("logs", "--since-time", later, "job/talk") == ""
    assert world.kubectl("logs", "--since=1h", "--tail=1", "job/talk") == "3\n"
    assert "simulated" in world.kubectl("logs", "-n", "kube-system", "-l", "app=nvidia")


def test_a_command_runs_in_a_container_by_kubectl_exec(world: World) -> None:
    command = "export LATE=1; cd /workspace; echo up; sleep 300"
    world.apply(job("entered", command, env={"MINE": "yes"}))
    until(lambda: [p for p in world.pods("entered") if p["status"].get("phase") == "Running"])
    # Until its process 1 has mounted what it sees, who enters sees what the node sees.
    until(lambda: "up" in world.kubectl("logs", "job/entered"))
    [pod] = world.pods("entered")
    name = pod["metadata"]["name"]
    inside = "echo $MINE $HOSTNAME; tr '\\0' ' ' < /proc/1/cmdline; cat; exit 3"
    answer = world.ask("kubectl", "exec", "-i", name, "--", "/bin/sh", "-c", inside)
    assert answer["out"].splitlines()[0] == f"yes {pod['spec'].get('hostname', name)}"
    assert "sleep 300" in answer["out"], "process 1 of the container"
    assert answer["rc"] == 3, answer["err"]
    gone = world.ask("kubectl", "exec", name, "--", "no-such-program")
    assert gone["rc"] != 0
    world.kubectl("delete", "job", "entered")


def test_a_pod_that_is_deleted_is_gone_and_its_processes_too(world: World) -> None:
    world.apply(job("sleeper", "sleep 4321"))
    until(lambda: [p["status"].get("phase") for p in world.pods("sleeper")] == ["Running"])
    world.kubectl("delete", "job", "sleeper")
    until(lambda: not world.pods("sleeper"))
    assert world.ask("shell", "pgrep -fx 'sleep 4321'")["out"] == ""


def test_a_machine_that_dies_takes_its_pods_along_and_is_not_started_again(world: World) -> None:
    world.apply(job("victim", "sleep 5432", nodes=2, gpus=8))
    until(lambda: [p["status"]["phase"] for p in world.pods("victim")] == ["Running"] * 2)
    world.ask("shell", "pkill -9 -f 'rehearsal.kubelet.machine i-[2] '")
    until(lambda: world.ask("shell", "pgrep -fxc 'sleep 5432'")["out"] == "1\n")
    until(lambda: world.ask("dead"))
    time.sleep(1)
    assert world.ask("dead") == ["i-2"], "EC2 is told once, and of no other"
    assert world.ask("shell", "pgrep -fc 'rehearsal.kubelet.machine i-[2] '")["out"] == "0\n"


def test_the_node_of_a_vanished_instance_is_deleted(world: World) -> None:
    world.ask("vanish", "i-2")
    until(lambda: len(world.get("nodes")["items"]) == 1)


def test_a_machine_is_light(world: World) -> None:
    pid = world.ask("shell", "pgrep -f 'rehearsal.kubelet.machine i-[1] '")["out"].split()[0]
    status = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    assert int(status["VmRSS"].split()[0]) < 45 * 1024
