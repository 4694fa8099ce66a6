"""What somebody of a team tries at a real API server: each attack is refused, and passes when the
control that refuses it is taken away. So no control is decoration.

Attacks of one sort have one number, such as A12, here and in test_queue_attacks.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from rehearsal.kube import ApiError, Object
from tests.support.patience import until
from tests.support.team_server import PREFIX, TeamServer, refusal, team_server, without_rule
from trainyard.objects.iam.secrets import DRIVER
from trainyard.objects.jobs.pod_template import VISIBLE
from trainyard.objects.programs.gangs import AGAIN
from trainyard.objects.programs.gangs import APP as GANGS
from trainyard.objects.teams.team_access import group_name, role_name
from trainyard.objects.teams.team_admission import LONGEST_GRACE_SECONDS, RULES
from trainyard.plans.directories import NAMESPACE

IMAGE = f"{PREFIX}train:1"
OWN, FOREIGN = "namespaces/team-vision", "namespaces/team-nlp"
ROOTS = f"namespaces/{NAMESPACE}"
TRAINER, LEGACY = "apis/trainer.kubeflow.org/v1alpha1", "apis/kubeflow.org/v1"
RBAC = "apis/rbac.authorization.k8s.io/v1"
NETWORKING = "apis/networking.k8s.io/v1"
KUEUE = "apis/kueue.x-k8s.io/v1beta1"
ADMISSION = "apis/admissionregistration.k8s.io/v1"


@pytest.fixture(scope="module")
def teams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("teams")) as made:
        yield made


def named(api_version: str, kind: str, **fields: Any) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "attack"}, **fields}


# Requests that the roles of a team do not have.

SUBJECT = {"kind": "User", "name": "me", "apiGroup": "rbac.authorization.k8s.io"}
ADMIN = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": "rbac.authorization.k8s.io"}
CLAIM = {
    "accessModes": ["ReadWriteMany"],
    "storageClassName": "",
    "volumeName": "team-nlp-scratch",
    "resources": {"requests": {"storage": "1Gi"}},
}
VOLUME = {
    "accessModes": ["ReadWriteMany"],
    "capacity": {"storage": "1Gi"},
    "csi": {"driver": "fsx.csi.aws.com", "volumeHandle": "fs-1"},
}
TOKEN = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "attack",
        "annotations": {"kubernetes.io/service-account.name": "default"},
    },
    "type": "kubernetes.io/service-account-token",
}
BINDING = {"target": {"apiVersion": "v1", "kind": "Node", "name": "system-1"}}
SLICE = {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.1.20"]}]}
POLICY = {"matchConstraints": {}, "validations": [{"expression": "true"}]}
RUNTIME = {"template": {"spec": {"replicatedJobs": []}}}
CSR = {
    "request": "",
    "signerName": "kubernetes.io/kube-apiserver-client",
    "usages": ["client auth"],
}
REQUESTS: dict[str, tuple[str, str, Object | None]] = {
    "A1 read a Secret of another team": ("GET", f"api/v1/{FOREIGN}/secrets/token", None),
    "A1 read the own Secrets by the API": ("GET", f"api/v1/{OWN}/secrets", None),
    "A1 list pods of another team": ("GET", f"api/v1/{FOREIGN}/pods", None),
    "A1 read a log of another team": ("GET", f"api/v1/{FOREIGN}/pods/p/log", None),
    "A1 read another namespace": ("GET", f"api/v1/{FOREIGN}", None),
    "A1 list all namespaces": ("GET", "api/v1/namespaces", None),
    "A1 list jobs of all teams": ("GET", f"{TRAINER}/trainjobs", None),
    "A1 read logs past the API server, from the node": (
        "GET",
        "api/v1/nodes/n/proxy/logs/",
        None,
    ),
    "A1 delete a job of another team": (
        "DELETE",
        f"{TRAINER}/{FOREIGN}/trainjobs/train",
        None,
    ),
    "A1 start a job in the namespace of another team": (
        "POST",
        f"{TRAINER}/{FOREIGN}/trainjobs",
        named("trainer.kubeflow.org/v1alpha1", "TrainJob", spec={"runtimeRef": {"name": "r"}}),
    ),
    "A2 exec into a pod of another team": (
        "POST",
        f"api/v1/{FOREIGN}/pods/p/exec?command=sh",
        None,
    ),
    "A2 exec": ("POST", f"api/v1/{OWN}/pods/p/exec?command=sh", None),
    "A2 attach": ("POST", f"api/v1/{OWN}/pods/p/attach", None),
    "A2 reach a port of a pod of another team": (
        "POST",
        f"api/v1/{FOREIGN}/pods/p/portforward",
        None,
    ),
    "A2 debug": ("PATCH", f"api/v1/{OWN}/pods/p/ephemeralcontainers", {}),
    "A4 make a volume": (
        "POST",
        "api/v1/persistentvolumes",
        named("v1", "PersistentVolume", spec=VOLUME),
    ),
    "A4 make a claim on a volume": (
        "POST",
        f"api/v1/{OWN}/persistentvolumeclaims",
        named("v1", "PersistentVolumeClaim", spec=CLAIM),
    ),
    "A4 free the volume of another team": (
        "PATCH",
        "api/v1/persistentvolumes/team-nlp-scratch",
        {"spec": {"claimRef": None}},
    ),
    "A5 start a pod where stores are mounted whole": (
        "POST",
        f"api/v1/{ROOTS}/pods",
        named("v1", "Pod", spec={}),
    ),
    "A5 make another directory with the Job of one's own": (
        "PATCH",
        f"apis/batch/v1/{ROOTS}/jobs/vision-scratch",
        {"spec": {"suspend": True}},
    ),
    "A5 look where stores are mounted whole": (
        "GET",
        f"api/v1/{ROOTS}/persistentvolumeclaims",
        None,
    ),
    "A8 a token of the service account by a Secret": (
        "POST",
        f"api/v1/{OWN}/secrets",
        TOKEN,
    ),
    "A8 make a service account": (
        "POST",
        f"api/v1/{OWN}/serviceaccounts",
        named("v1", "ServiceAccount"),
    ),
    "A9 a RuntimeClass of one's own": (
        "POST",
        "apis/node.k8s.io/v1/runtimeclasses",
        named("node.k8s.io/v1", "RuntimeClass", handler="mine"),
    ),
    "A11 bind a pod to a node": (
        "POST",
        f"api/v1/{OWN}/pods/p/binding",
        named("v1", "Binding", **BINDING),
    ),
    "A11 a pool of one's own": (
        "POST",
        "apis/karpenter.sh/v1/nodepools",
        named("karpenter.sh/v1", "NodePool", spec={}),
    ),
    "A12 a ClusterQueue of one's own": (
        "POST",
        f"{KUEUE}/clusterqueues",
        named(KUEUE[5:], "ClusterQueue", spec={}),
    ),
    "A16 a PriorityClass of one's own": (
        "POST",
        "apis/scheduling.k8s.io/v1/priorityclasses",
        named("scheduling.k8s.io/v1", "PriorityClass", value=1_000_000),
    ),
    "A11 make a pod": ("POST", f"api/v1/{OWN}/pods", named("v1", "Pod", spec={})),
    "A11 make a Job": ("POST", f"apis/batch/v1/{OWN}/jobs", named("batch/v1", "Job", spec={})),
    "A19 delete the quota": ("DELETE", f"api/v1/{OWN}/resourcequotas/gpus", None),
    "A19 delete the smallest requests": ("DELETE", f"api/v1/{OWN}/limitranges/requests", None),
    "A19 raise the quota": (
        "PATCH",
        f"api/v1/{OWN}/resourcequotas/gpus",
        {"spec": {"hard": {"requests.nvidia.com/gpu": "64"}}},
    ),
    "A19 change the own LocalQueue": ("PATCH", f"{KUEUE}/{OWN}/localqueues/vision", {"spec": {}}),
    "A19 admit a Workload": ("PATCH", f"{KUEUE}/{OWN}/workloads/w/status", {"status": {}}),
    "A19 stop a gang of another team": (
        "PATCH",
        f"{KUEUE}/{FOREIGN}/workloads/w",
        {"spec": {"active": False}},
    ),
    "A19 start half a gang before its time": (
        "PATCH",
        f"{KUEUE}/{OWN}/workloads/w",
        {"spec": {"active": True}, "metadata": {"annotations": {AGAIN: None}}},
    ),
    "A19 delete the network policy": (
        "DELETE",
        f"{NETWORKING}/{OWN}/networkpolicies/network",
        None,
    ),
    "A19 admit everybody by a network policy of one's own": (
        "POST",
        f"{NETWORKING}/{OWN}/networkpolicies",
        named(NETWORKING[5:], "NetworkPolicy", spec={"podSelector": {}, "ingress": [{}]}),
    ),
    "A19 change the namespace's labels": ("PATCH", f"api/v1/{OWN}", {"metadata": {"labels": {}}}),
    "A19 delete the namespace": ("DELETE", f"api/v1/{OWN}", None),
    "A20 make a cluster's runtime": (
        "POST",
        f"{TRAINER}/clustertrainingruntimes",
        named("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", spec=RUNTIME),
    ),
    "A20 change a cluster's runtime": (
        "PATCH",
        f"{TRAINER}/clustertrainingruntimes/torch-distributed",
        {"spec": {"template": {"spec": {}}}},
    ),
    "A20 delete a cluster's runtime": (
        "DELETE",
        f"{TRAINER}/clustertrainingruntimes/torch-distributed",
        None,
    ),
    "A21 bind a role": (
        "POST",
        f"{RBAC}/{OWN}/rolebindings",
        named(RBAC[5:], "RoleBinding", roleRef=ADMIN, subjects=[SUBJECT]),
    ),
    "A21 change the binding of the own role": (
        "PATCH",
        f"{RBAC}/{OWN}/rolebindings/{role_name('member')}",
        {"subjects": [SUBJECT]},
    ),
    "A21 widen the own role": (
        "PATCH",
        f"{RBAC}/clusterroles/{role_name('member')}",
        {"rules": []},
    ),
    "A21 bind a role of the cluster": (
        "POST",
        f"{RBAC}/clusterrolebindings",
        named(RBAC[5:], "ClusterRoleBinding", roleRef=ADMIN, subjects=[SUBJECT]),
    ),
    "A21 delete the binding of a policy": (
        "DELETE",
        f"{ADMISSION}/validatingadmissionpolicybindings/trainyard-team-pods",
        None,
    ),
    "A21 change a policy": (
        "PATCH",
        f"{ADMISSION}/validatingadmissionpolicies/trainyard-team-pods",
        {"spec": {"validations": []}},
    ),
    "A21 a policy of one's own against others": (
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        named(ADMISSION[5:], "ValidatingAdmissionPolicy", spec=POLICY),
    ),
    "A21 an API server of one's own": (
        "POST",
        "apis/apiregistration.k8s.io/v1/apiservices",
        named("apiregistration.k8s.io/v1", "APIService", spec={}),
    ),
    "A21 make a webhook": (
        "POST",
        f"{ADMISSION}/mutatingwebhookconfigurations",
        named(ADMISSION[5:], "MutatingWebhookConfiguration"),
    ),
    "A21 ask for a certificate": (
        "POST",
        "apis/certificates.k8s.io/v1/certificatesigningrequests",
        named("certificates.k8s.io/v1", "CertificateSigningRequest", spec=CSR),
    ),
    "A21 label a node": ("PATCH", "api/v1/nodes/n", {"metadata": {"labels": {"a": "b"}}}),
    "A23 a Service that leads to other pods": (
        "POST",
        f"api/v1/{OWN}/services",
        named("v1", "Service", spec={"ports": [{"port": 80}]}),
    ),
    "A23 the addresses behind a Service": (
        "POST",
        f"apis/discovery.k8s.io/v1/{OWN}/endpointslices",
        named("discovery.k8s.io/v1", "EndpointSlice", **SLICE),
    ),
    "A21 a token of the program that stops half gangs": (
        "POST",
        f"api/v1/namespaces/{GANGS}/serviceaccounts/{GANGS}/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    ),
    "A21 a pod with the rights of that program": (
        "POST",
        f"api/v1/namespaces/{GANGS}/pods",
        named("v1", "Pod", spec={"serviceAccountName": GANGS}),
    ),
    "A21 change that program": (
        "PATCH",
        f"api/v1/namespaces/{GANGS}/configmaps/{GANGS}",
        {"data": {"gangs.py": ""}},
    ),
    "A21 a token of a service account": (
        "POST",
        f"api/v1/{OWN}/serviceaccounts/default/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    ),
}


def attempt(teams: TeamServer, role: str, case: str) -> str:
    """Why the request is forbidden; empty where it is not, even if there is no such object."""
    method, path, body = REQUESTS[case]
    try:
        return refusal(teams.of(role), method, f"/{path}", body)
    except ApiError:
        return ""


@pytest.mark.parametrize("role", ["deployer", "member", "viewer"])
@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_beyond_the_team_is_forbidden(teams: TeamServer, case: str, role: str) -> None:
    assert "is forbidden: User" in attempt(teams, role, case)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_who_starts_pods_reaches_their_ports_and_nobody_else(
    teams: TeamServer, method: str
) -> None:
    """There is no such pod: the API server says so to whoever has the right."""

    def answer(role: str) -> str:
        try:
            return refusal(teams.of(role), method, f"/api/v1/{OWN}/pods/p/portforward", None)
        except ApiError:
            return ""

    assert "is forbidden: User" in answer("viewer")
    assert answer("deployer") == answer("member") == ""


def test_each_of_these_requests_passes_for_whoever_has_the_verb(teams: TeamServer) -> None:
    """Granted everything, the same group is refused nothing of this."""
    grant = {
        **named(RBAC[5:], "ClusterRoleBinding"),
        "roleRef": ADMIN,
        "subjects": [
            {
                "kind": "Group",
                "name": group_name("team-vision", "member"),
                "apiGroup": "rbac.authorization.k8s.io",
            }
        ],
    }
    teams.put(grant)
    try:
        passes = until(lambda: not attempt(teams, "member", "A1 list all namespaces"))
        assert passes
        assert [case for case in REQUESTS if "User" in attempt(teams, "member", case)] == []
    finally:
        teams.admin.delete(grant)
        until(lambda: bool(attempt(teams, "member", "A1 list all namespaces")))


def test_nobody_of_a_team_can_act_as_somebody_else(teams: TeamServer) -> None:
    """A21, impersonation: the request would be the administrator's, so it is asked about."""
    everybody = ("deployer", "member", "viewer")
    assert [who for who in everybody if teams.may(who, "impersonate", "serviceaccounts")] == []


# What a team needs and has.


def train_job(**spec: Any) -> Object:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "attack", "namespace": "team-vision"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {"image": IMAGE, "numNodes": 1},
            **spec,
        },
    }


def pod_spec(**spec: Any) -> Object:
    return {"containers": [{"name": "c", "image": IMAGE}], **spec}


def pod(**spec: Any) -> Object:
    return named("v1", "Pod", spec=pod_spec(**spec))


def legacy_job(**spec: Any) -> Object:
    template = {"spec": {"containers": [{"name": "pytorch", "image": IMAGE}], **spec}}
    return named(
        "kubeflow.org/v1",
        "PyTorchJob",
        spec={"pytorchReplicaSpecs": {"Master": {"template": template}}},
    )


def own_runtime(**spec: Any) -> Object:
    job = {"template": {"spec": {"template": {"spec": pod_spec(**spec)}}}, "name": "node"}
    return named(
        "trainer.kubeflow.org/v1alpha1",
        "TrainingRuntime",
        spec={"template": {"spec": {"replicatedJobs": [job]}}},
    )


def overridden(**spec: Any) -> Object:
    return train_job(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": spec}])


HOUR = 3600
PLACE = {"topologyKey": "trainyard.io/pool", "labelSelector": {}}


def _keeps_off(where: str = "podAntiAffinity", *, prefers: bool = False, **others: Any) -> Object:
    """Affinity of a pod to those that `others` names."""
    term: Object = PLACE | others
    if prefers:
        weighted = {"weight": 1, "podAffinityTerm": term}
        return {where: {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
    return {where: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


DISRUPTED = "karpenter.sh/disrupted"


def _tolerating(amount: int | str) -> Object:
    """A taint of nodes that leave, and an amount of a device of the same name."""
    container = {"name": "pytorch", "image": IMAGE, "resources": {"limits": {DISRUPTED: amount}}}
    return {
        "tolerations": [{"key": DISRUPTED, "operator": "Exists"}],
        "containers": [container],
    }


PLACES = {
    "TrainJob": ("member", f"/{TRAINER}/{OWN}/trainjobs"),
    "PyTorchJob": ("member", f"/{LEGACY}/{OWN}/pytorchjobs"),
    "TrainingRuntime": ("deployer", f"/{TRAINER}/{OWN}/trainingruntimes"),
    "Pod": ("job-controller", f"/api/v1/{OWN}/pods"),
}
"""Kind → who makes it, and where."""


def made(teams: TeamServer, body: Object) -> str:
    """Why the object is refused; empty where it is not."""
    role, path = PLACES[body["kind"]]
    return refusal(teams.of(role), "POST", path, body)


@pytest.mark.parametrize(
    "sound",
    [
        train_job(),
        overridden(volumes=[{"name": "d", "emptyDir": {"medium": "Memory"}}]),
        legacy_job(),
        legacy_job(priorityClassName="high"),
        own_runtime(),
        pod(),
        pod(tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]),
        pod(**_tolerating("1")),
        legacy_job(**_tolerating(1)),
        own_runtime(**_tolerating("1")),
        pod(volumes=[{"name": "c", "persistentVolumeClaim": {"claimName": "scratch"}}]),
        pod(priorityClassName="high"),
        pod(terminationGracePeriodSeconds=LONGEST_GRACE_SECONDS),
        pod(affinity={"nodeAffinity": {}}),
        pod(affinity=_keeps_off()),
        pod(affinity=_keeps_off("podAffinity", prefers=True, namespaces=["team-vision"])),
        overridden(affinity=_keeps_off(prefers=True)),
        pod(
            containers=[{"name": "c", "image": IMAGE, "env": [{"name": VISIBLE, "value": "void"}]}]
        ),
        train_job(
            trainer={"env": [{"name": VISIBLE, "value": "none"}, {"name": "LR", "value": "1"}]}
        ),
    ],
    ids=lambda body: body["kind"],
)
def test_sound_work_of_a_team_is_admitted(teams: TeamServer, sound: Object) -> None:
    assert made(teams, sound) == ""


def test_a_team_without_queues_scales_its_elastic_jobs(teams: TeamServer) -> None:
    job = legacy_job()
    roles = job["spec"]["pytorchReplicaSpecs"]
    roles["Worker"] = copy.deepcopy(roles["Master"]) | {"replicas": 2}
    job["metadata"] = {"name": "elastic", "namespace": "team-vision"}
    path = PLACES["PyTorchJob"][1]
    teams.admin.request("POST", path, job)
    try:
        wider = {"spec": {"replicas": 3}}
        for role in ("deployer", "member"):
            assert refusal(teams.of(role), "PATCH", f"{path}/elastic/scale", wider) == ""
        assert "cannot patch" in refusal(
            teams.of("viewer"), "PATCH", f"{path}/elastic/scale", wider
        )
    finally:
        teams.admin.request("DELETE", f"{path}/elastic")


def test_a_team_reads_its_own_namespace_and_the_runtimes_of_the_cluster(teams: TeamServer) -> None:
    for role in ("deployer", "member", "viewer"):
        for path in (
            f"api/v1/{OWN}",
            f"api/v1/{OWN}/pods",
            f"api/v1/{OWN}/events",
            f"{TRAINER}/{OWN}/trainjobs",
            f"{TRAINER}/clustertrainingruntimes",
        ):
            assert teams.of(role).request("GET", f"/{path}"), (role, path)


def test_a_viewer_starts_nothing_and_a_member_makes_no_runtime(teams: TeamServer) -> None:
    jobs, runtimes = PLACES["TrainJob"][1], PLACES["TrainingRuntime"][1]
    assert "cannot create" in refusal(teams.of("viewer"), "POST", jobs, train_job())
    assert "cannot create" in refusal(teams.of("member"), "POST", runtimes, own_runtime())


# What the policies refuse.

CSI = {"name": "v", "csi": {"driver": "efs.csi.aws.com"}}
NFS = {"name": "v", "nfs": {"server": "fs-1", "path": "/"}}
HOST = {"name": "v", "hostPath": {"path": "/"}}
OTHERS = {
    "name": "v",
    "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}},
}
ANYWHERE = {"operator": "Exists"}
SEES = {"name": VISIBLE, "value": "all"}
SEES_WHAT_IT_IS_TOLD = {
    "name": VISIBLE,
    "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['gpus']"}},
}
MINUS = {"nvidia.com/gpu": "-8"}
OFF_ITS_POOL = _keeps_off(namespaceSelector={})
REFUSED: dict[str, tuple[str, Object]] = {
    "A6 inline csi volume in a TrainJob": ("volumes", overridden(volumes=[CSI])),
    "A4 another team's volume by an ephemeral claim, in a TrainJob": (
        "volumes",
        overridden(volumes=[OTHERS]),
    ),
    "A4 another team's volume by an ephemeral claim, in a pod": ("volumes", pod(volumes=[OTHERS])),
    "A6 nfs volume in a pod": ("volumes", pod(volumes=[NFS])),
    "A6 csi volume in a pod": ("volumes", pod(volumes=[CSI])),
    "A6 secrets of Secrets Manager where no team has any": (
        "volumes",
        pod(volumes=[{"name": "v", "csi": {"driver": DRIVER, "readOnly": True}}]),
    ),
    "A6 nfs volume in a PyTorchJob": ("volumes", legacy_job(volumes=[NFS])),
    "A9 hostPath in a TrainingRuntime": ("volumes", own_runtime(volumes=[HOST])),
    "A9 hostNetwork in a PyTorchJob": ("host", legacy_job(hostNetwork=True)),
    "A9 hostPID in a TrainingRuntime": ("host", own_runtime(hostPID=True)),
    "A9 hostIPC in a PyTorchJob": ("host", legacy_job(hostIPC=True)),
    "A10 tolerate everything in a PyTorchJob": ("tolerations", legacy_job(tolerations=[ANYWHERE])),
    "A10 tolerate everything in a TrainingRuntime": (
        "tolerations",
        own_runtime(tolerations=[ANYWHERE]),
    ),
    "A10 tolerate everything in a TrainJob": ("tolerations", overridden(tolerations=[ANYWHERE])),
    "A10 tolerate everything in a pod": ("tolerations", pod(tolerations=[ANYWHERE])),
    "A10 tolerate by no device of that name, in a pod": ("tolerations", pod(**_tolerating(0))),
    "A10 tolerate by no device of that name, in a PyTorchJob": (
        "tolerations",
        legacy_job(**_tolerating("0")),
    ),
    "A10 tolerate by no device of that name, in a TrainingRuntime": (
        "tolerations",
        own_runtime(**_tolerating("0m")),
    ),
    "A10 tolerate CriticalAddonsOnly": (
        "tolerations",
        pod(tolerations=[{"key": "CriticalAddonsOnly", "operator": "Exists"}]),
    ),
    "A11 nodeName in a PyTorchJob": ("node", legacy_job(nodeName="system-1")),
    "A11 nodeName in a TrainingRuntime": ("node", own_runtime(nodeName="system-1")),
    "A11 nodeName in a pod": ("node", pod(nodeName="system-1")),
    "A11 another scheduler": ("scheduler", legacy_job(schedulerName="mine")),
    "A11 another scheduler in a pod": ("scheduler", pod(schedulerName="mine")),
    "A16 priority of the cluster in a pod": (
        "priority",
        pod(priorityClassName="system-cluster-critical"),
    ),
    "A16 priority of others in a PyTorchJob": ("priority", legacy_job(priorityClassName="urgent")),
    "A17 negative GPUs in a TrainJob": (
        "quantities",
        train_job(trainer={"resourcesPerNode": {"limits": MINUS}}),
    ),
    "A17 negative requests in a TrainJob": (
        "quantities",
        train_job(trainer={"resourcesPerNode": {"requests": {"nvidia.com/gpu": -8}}}),
    ),
    "A17 negative GPUs in a PyTorchJob": (
        "quantities",
        legacy_job(
            containers=[{"name": "pytorch", "image": IMAGE, "resources": {"limits": MINUS}}]
        ),
    ),
    "A17 negative GPUs in a TrainingRuntime": (
        "quantities",
        own_runtime(containers=[{"name": "c", "image": IMAGE, "resources": {"limits": MINUS}}]),
    ),
    "A25 all GPUs of the node in a TrainJob": ("devices", train_job(trainer={"env": [SEES]})),
    "A25 all GPUs of the node in an override": (
        "devices",
        overridden(containers=[{"name": "node", "env": [SEES]}]),
    ),
    "A25 all GPUs of the node in a PyTorchJob": (
        "devices",
        legacy_job(containers=[{"name": "pytorch", "image": IMAGE, "env": [SEES]}]),
    ),
    "A25 all GPUs of the node in a TrainingRuntime": (
        "devices",
        own_runtime(containers=[{"name": "c", "image": IMAGE, "env": [SEES]}]),
    ),
    "A25 all GPUs of the node in a pod": (
        "devices",
        pod(initContainers=[{"name": "i", "image": IMAGE, "env": [SEES]}]),
    ),
    "A25 a GPU of the node that a field names": (
        "devices",
        pod(containers=[{"name": "c", "image": IMAGE, "env": [SEES_WHAT_IT_IS_TOLD]}]),
    ),
    "A26 keep all others off the pool, in a pod": ("affinity", pod(affinity=OFF_ITS_POOL)),
    "A26 keep all others off the pool, in a PyTorchJob": (
        "affinity",
        legacy_job(affinity=OFF_ITS_POOL),
    ),
    "A26 keep all others off the pool, in a TrainingRuntime": (
        "affinity",
        own_runtime(affinity=OFF_ITS_POOL),
    ),
    "A26 keep all others off the pool, in an override": (
        "affinity",
        overridden(affinity=OFF_ITS_POOL),
    ),
    "A26 keep another team off the pool": (
        "affinity",
        pod(affinity=_keeps_off(namespaces=["team-vision", "team-nlp"])),
    ),
    "A26 lie beside the pods of another team": (
        "affinity",
        pod(affinity=_keeps_off("podAffinity", prefers=True, namespaces=["team-nlp"])),
    ),
    "A27 a pod that takes an hour to end": (
        "grace",
        pod(terminationGracePeriodSeconds=HOUR),
    ),
    "A27 a PyTorchJob that takes an hour to end": (
        "grace",
        legacy_job(terminationGracePeriodSeconds=HOUR),
    ),
    "A27 a TrainingRuntime that takes an hour to end": (
        "grace",
        own_runtime(terminationGracePeriodSeconds=HOUR),
    ),
    "A22 image of another team in a PyTorchJob": (
        "images",
        legacy_job(containers=[{"name": "pytorch", "image": "registry.example.com/nlp/a:1"}]),
    ),
    "A22 image of another team in a TrainJob": (
        "images",
        train_job(trainer={"image": "registry.example.com/nlp/secret:1"}),
    ),
    "A22 image of another team in a pod": (
        "images",
        pod(initContainers=[{"name": "i", "image": "registry.example.com/vision2/a:1"}]),
    ),
    "another service account in a TrainJob": (
        "service account",
        overridden(serviceAccountName="admin"),
    ),
    "another service account in a pod": ("service account", legacy_job(serviceAccountName="admin")),
}
"""What is tried → the rule that refuses it, and the object."""


def test_every_rule_of_the_policies_has_an_attack() -> None:
    assert {rule for rule, _ in REFUSED.values()} == RULES.keys()


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_policy_forbids_is_refused_by_its_sentence(teams: TeamServer, case: str) -> None:
    rule, body = REFUSED[case]
    assert RULES[rule].message in made(teams, body)


@pytest.mark.parametrize("rule", RULES)
def test_without_its_rule_each_attack_passes(teams: TeamServer, rule: str) -> None:
    cases = {name: body for name, (control, body) in REFUSED.items() if control == rule}
    with without_rule(teams, RULES[rule].message):
        for name, body in cases.items():
            assert until(lambda body=body: not made(teams, body)), name
    for name, body in cases.items():
        assert until(lambda body=body: bool(made(teams, body))), name


def test_a_sound_runtime_cannot_become_an_attack(teams: TeamServer) -> None:
    """A9 by an update, as a deployer may change runtimes."""
    sound = own_runtime()
    sound["metadata"]["namespace"] = "team-vision"
    attack = {"spec": own_runtime(volumes=[HOST])["spec"]}
    at = f"{PLACES['TrainingRuntime'][1]}/attack"

    def changed() -> str:
        return refusal(teams.of("deployer"), "PATCH", at, attack)

    teams.of("deployer").request("POST", PLACES["TrainingRuntime"][1], sound)
    try:
        assert RULES["volumes"].message in changed()
        with without_rule(teams, RULES["volumes"].message):
            assert until(lambda: not changed())
    finally:
        teams.admin.delete(sound)
    assert until(lambda: bool(made(teams, own_runtime(volumes=[HOST]))))


# What Pod Security, quotas and defaults refuse.


@dataclass(frozen=True, kw_only=True)
class Wall:
    """A control that is an object, or a label of one."""

    without: Callable[[TeamServer], Callable[[], None]]
    """Takes it away, and returns what puts it back."""


def _unlabelled(teams: TeamServer) -> Callable[[], None]:
    whole = teams.objects["Namespace team-vision"]
    less = copy.deepcopy(whole)
    less["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = "privileged"
    teams.put(less)
    return lambda: teams.put(whole)


def _without(name: str) -> Callable[[TeamServer], Callable[[], None]]:
    def remove(teams: TeamServer) -> Callable[[], None]:
        whole = teams.objects[name]
        teams.admin.delete(whole)
        return lambda: teams.put(whole)

    return remove


def _container(**fields: Any) -> Object:
    return pod(containers=[{"name": "c", "image": IMAGE, **fields}])


BEHIND_WALLS: dict[str, tuple[str, Wall, Object]] = {
    "A9 a privileged container": (
        "PodSecurity",
        Wall(without=_unlabelled),
        _container(securityContext={"privileged": True}),
    ),
    "A9 a capability": (
        "PodSecurity",
        Wall(without=_unlabelled),
        _container(securityContext={"capabilities": {"add": ["SYS_ADMIN"]}}),
    ),
    "A9 a port of the host": (
        "PodSecurity",
        Wall(without=_unlabelled),
        _container(ports=[{"containerPort": 80, "hostPort": 80}]),
    ),
    "A9 a sysctl of the node": (
        "PodSecurity",
        Wall(without=_unlabelled),
        pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    ),
    "A9 no seccomp": (
        "PodSecurity",
        Wall(without=_unlabelled),
        _container(securityContext={"seccompProfile": {"type": "Unconfined"}}),
    ),
    "A18 more GPUs than its share": (
        "exceeded quota: gpus",
        Wall(without=_without("ResourceQuota gpus of team-vision")),
        _container(resources={"limits": {"nvidia.com/gpu": "17"}}),
    ),
}


@pytest.mark.parametrize("case", BEHIND_WALLS)
def test_a_pod_over_the_wall_is_refused_and_passes_without_it(teams: TeamServer, case: str) -> None:
    says, wall, body = BEHIND_WALLS[case]
    assert says in made(teams, body)
    put_back = wall.without(teams)
    try:
        assert until(lambda: not made(teams, body))
    finally:
        put_back()
    assert until(lambda: says in made(teams, body))


def test_what_two_controls_refuse_needs_both_taken_away(teams: TeamServer) -> None:
    """A9: hostPath in a pod, by Pod Security and by the policy."""
    body = pod(volumes=[HOST])
    with without_rule(teams, RULES["volumes"].message):
        assert until(lambda: "PodSecurity" in made(teams, body))
        put_back = _unlabelled(teams)
        try:
            assert until(lambda: not made(teams, body))
        finally:
            put_back()
        assert until(lambda: "PodSecurity" in made(teams, body))


# What keeps one team from the data of another. Which directory a pod sees is in its volume:
# tests/rehearsal/kubelet/test_drivers.py.


def test_a_claim_never_gets_the_volume_of_another_team(teams: TeamServer) -> None:
    """A4, by somebody who could make claims: the volume is reserved for its team, and without the
    reservation it is bound to whoever comes."""
    volume, claim = (_of_nlp(teams, kind) for kind in ("PersistentVolume", "PersistentVolumeClaim"))
    attack = named("v1", "PersistentVolumeClaim", spec=CLAIM | {"volumeName": _name(volume)})
    attack["metadata"]["namespace"] = "team-vision"
    at = f"/api/v1/{OWN}/persistentvolumeclaims/attack"

    def bound() -> bool:
        return teams.admin.request("GET", at)["status"]["phase"] == "Bound"

    def told() -> bool:
        events = teams.admin.request("GET", f"/api/v1/{OWN}/events")["items"]
        return any("already bound to a different claim" in each["message"] for each in events)

    teams.put(attack)
    try:
        assert until(told) and not bound()
        for each in (claim, volume):
            _gone(teams, each)
        free = copy.deepcopy(volume)
        del free["spec"]["claimRef"]
        teams.put(free)
        assert until(bound)
    finally:
        for each in (attack, volume):
            _gone(teams, each)
        for each in (volume, claim):
            teams.put(each)


def _of_nlp(teams: TeamServer, kind: str) -> Object:
    """The team's volume or claim of scratch."""
    [found] = [
        each
        for each in teams.objects.values()
        if each["kind"] == kind and "team-nlp" in str(each) and "scratch" in _name(each)
    ]
    return found


def _name(obj: Object) -> str:
    return obj["metadata"]["name"]


def _gone(teams: TeamServer, obj: Object) -> None:
    teams.admin.delete(obj)
    assert until(lambda: teams.admin.get(obj) is None)


@pytest.mark.parametrize("field", ["subPath", "subPathExpr"])
def test_a_mount_cannot_climb_out_of_its_volume(teams: TeamServer, field: str) -> None:
    """A5: the API server refuses `..` in pods of anybody, which is no setting of ours."""
    mount = {"name": "v", "mountPath": "/v", field: "../nlp"}
    body = _container(volumeMounts=[mount])
    body["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "scratch"}}]
    with pytest.raises(ApiError, match=r"must not contain '\.\.'"):
        made(teams, body)


def test_a_team_cannot_fill_the_cluster_with_small_jobs(teams: TeamServer) -> None:
    """A18: the third of two."""
    body = train_job()
    body["metadata"] = {"generateName": "job-", "namespace": "team-vision"}
    with _filled(teams, "member", PLACES["TrainJob"][1], body, 2) as refused:
        assert "exceeded quota: objects" in refused
        assert "count/trainjobs.trainer.kubeflow.org=2" in refused
        put_back = _without("ResourceQuota objects of team-vision")(teams)
        try:
            assert until(lambda: not made(teams, train_job()))
        finally:
            put_back()
        assert until(lambda: "exceeded quota: objects" in made(teams, train_job()))


@contextmanager
def _filled(teams: TeamServer, role: str, path: str, body: Object, most: int) -> Iterator[str]:
    """While a team has its most of an object: what one more is refused with. Twice as many are tried: while
    Kubernetes counts anew, as after a deletion, it reads a cache and can forget the last ones."""
    _until_counted(teams)
    refused = ""
    with ExitStack() as stack:
        for _ in range(2 * most):
            try:
                made_one = teams.of(role).request("POST", path, body)
            except ApiError as error:
                refused = str(error)
                break
            stack.callback(teams.admin.delete, made_one)
        yield refused
    _until_counted(teams)


def _until_counted(teams: TeamServer) -> None:
    """Wait until the quota has the numbers of what is there. Kubernetes counts all of it anew after each deletion,
    and overwrites what it has counted at requests meanwhile."""
    places = {
        "count/configmaps": f"/api/v1/{OWN}/configmaps",
        "count/trainingruntimes.trainer.kubeflow.org": PLACES["TrainingRuntime"][1],
        "count/trainjobs.trainer.kubeflow.org": PLACES["TrainJob"][1],
    }

    def counted() -> bool:
        quota = teams.admin.request("GET", f"/api/v1/{OWN}/resourcequotas/objects")
        used = quota.get("status", {}).get("used", {})
        there = {
            kind: str(len(teams.admin.request("GET", path)["items"]))
            for kind, path in places.items()
        }
        return there.items() <= used.items()

    assert until(counted), "the quota does not have the numbers of what is there"


def test_a_team_cannot_fill_etcd_with_files(teams: TeamServer) -> None:
    """A18: the teams of this cluster can have 70 ConfigMaps, with the one that Kubernetes makes."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "full-"}}
    with _filled(teams, "member", f"/api/v1/{OWN}/configmaps", body, 70) as refused:
        assert "exceeded quota: objects" in refused and "count/configmaps=70" in refused


def test_a_team_cannot_fill_etcd_with_runtimes(teams: TeamServer) -> None:
    """A18: a deployer of this team can have 52, two for its jobs."""
    body = own_runtime()
    body["metadata"] = {"generateName": "full-", "namespace": "team-vision"}
    with _filled(teams, "deployer", PLACES["TrainingRuntime"][1], body, 52) as refused:
        assert "exceeded quota: objects" in refused
        assert "count/trainingruntimes.trainer.kubeflow.org=52" in refused


def test_a_pod_that_requests_nothing_is_not_the_first_to_be_killed(teams: TeamServer) -> None:
    """A18: without the LimitRange its class would be BestEffort."""

    def quality() -> str:
        api, path = teams.of("job-controller"), f"{PLACES['Pod'][1]}?dryRun=All"
        return api.request("POST", path, pod())["status"]["qosClass"]

    assert quality() == "Burstable"
    put_back = _without("LimitRange requests of team-vision")(teams)
    try:
        assert until(lambda: quality() == "BestEffort")
    finally:
        put_back()
    assert until(lambda: quality() == "Burstable")


def test_an_empty_namespace_without_the_label_is_judged_by_no_rule(teams: TeamServer) -> None:
    """The policies hold for teams only: the environment's own jobs may use folders of nodes."""
    body = pod(nodeName="n")
    assert (
        refusal(teams.of("job-controller"), "POST", "/api/v1/namespaces/default/pods", body) == ""
    )


def test_the_roles_that_namespaces_bind_are_those_of_the_table(teams: TeamServer) -> None:
    for role in ("deployer", "member", "viewer"):
        assert f"ClusterRole {role_name(role)}" in teams.objects
        assert f"RoleBinding {role_name(role)} of team-vision" in teams.objects
