"""Errors about the pods of an object of a YAML file: where they can run, and what their containers
ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainyard.catalog import fabric
from trainyard.catalog.aws.zones import ZONE_LETTERS, every_zone_name
from trainyard.catalog.quantities import amount
from trainyard.manifests.blanks import blank_errors
from trainyard.manifests.context import HYPERPOD, ManifestContext
from trainyard.manifests.document import Container, Path, Requirement, items, look, mapping
from trainyard.manifests.pod_shape import shape_errors
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.problems import InputError, InputWarning
from trainyard.rules.images import image_errors, is_untagged
from trainyard.rules.mounts import mount_path_errors
from trainyard.rules.pinning import PINNED, unpinned

Problems = Iterator[InputError | InputWarning]
LABELS = (
    (r"((?:node|beta)\.)?kubernetes\.io/(zone|region)", r"topology.kubernetes.io/\2"),
    (r"(?:topology\.)?kubernetes\.io/instance-type", "node.kubernetes.io/instance-type"),
    (
        r"sagemaker\.amazonaws\.com/.*",
        "node.kubernetes.io/instance-type: p5.48xlarge; only nodes of SageMaker HyperPod have it",
    ),
    (
        r"nvidia\.com/gpu\..*",
        "node.kubernetes.io/instance-type: p5.48xlarge, which Karpenter knows before a node runs",
    ),
)
"""Label that nodes do not have → what to select by, an instance type being an example."""
NO_RESOURCES = {
    "nvidia.com": GPU,
    "nvidia.com/gpus": GPU,
    "gpu": GPU,
    "vpc.amazonaws.com": EFA,
    "efa": EFA,
}
"""Resource that no node has → the one that is meant."""

OTHER_DEVICES = {
    "amd.com/": "AMD",
    "habana.ai/": "Intel (Gaudi)",
    "gpu.intel.com/": "Intel",
    "aws.amazon.com/neuron": "AWS (Trainium and Inferentia)",
    "google.com/tpu": "Google (TPU)",
    "huawei.com/": "Huawei (Ascend)",
}
"""Beginning of a resource's name → maker of the device."""


TRAINS = ("pytorch", "node")
"""Containers that train, in a PyTorchJob and in the runtime of a TrainJob."""
LIMITS = ("backoffLimit", "activeDeadlineSeconds")
"""Fields of a runPolicy that end a job whose pods fail again and again."""
RESTARTS = 5
"""Restarts of each pod in the limit that a message proposes: as many as an own runtime has by default."""


def pod_problems(context: ManifestContext) -> Problems:
    """Every error and warning of the pods."""
    yield from _topology_keys(context)
    yield from _selectors(context)
    yield from _one_host(context)
    yield from blank_errors(context.workload, scripts=False)
    yield from _volume_sources(context)
    yield from _volume_names(context)
    yield from _images_of_init_containers(context)
    yield from shape_errors(context)
    yield from _restarts_for_ever(context)
    yield from _names_of_nodes(context)
    yield from _beside_the_trainer(context)
    for container in context.workload.containers:
        yield from _resource_names(context, container)
        yield from _other_devices(context, container)
        yield from _set_twice(context, container)
        yield from _mounts(context, container)
        yield from _limits(context, container)
        yield from _efa(context, container)
        yield from _privileged(context, container)


def _images_of_init_containers(context: ManifestContext) -> Problems:
    """Problems with images and clones of init containers. Those of containers that train: rules/jobs.py."""
    for pod in context.workload.pods:
        for container in pod.init_containers:
            image = str(container.body.get("image") or "")
            at = container.at("image")
            yield from image_errors(image, context.workload.at(*at)) if image else ()
            shown = f"{image}:latest" if image and is_untagged(image) else image
            for name, what, fix in unpinned(shown, container.script):
                path = at if name == "image" else container.runs
                if context.production:
                    yield context.error(path, PINNED, what, fix)
                else:
                    yield context.warning(path, f"{what}: {fix}")


def _mounts(context: ManifestContext, container: Container) -> Problems:
    """Errors about mounts of a container. A folder of the node at its own path, such as /dev, is
    meant."""
    seen: dict[str, int] = {}
    kept = {
        str(volume.get("name")): look(volume, "hostPath", "path")
        for pod in context.workload.pods
        for volume in items(pod.spec.get("volumes"))
    }
    for number, mount in enumerate(items(container.body.get("volumeMounts"))):
        path = str(mount.get("mountPath") or "/none")
        at = container.at("volumeMounts", number, "mountPath")
        if kept.get(str(mount.get("name"))) != path:
            yield from mount_path_errors(path, context.workload.at(*at))
        first = seen.setdefault(path.rstrip("/"), number)
        if ":" in path:
            yield context.error(
                at, "have no colon in it", path, "write a path without it, such as /data"
            )
        elif first != number:
            must = f"be a path of one volume only: volumeMounts[{first}] has it"
            fix = "delete this mount, or write a folder of its own, such as /data"
            yield context.error(at, must, path, fix)
        below = str(mount.get("subPath") or "")
        if below.startswith("/") or ".." in below.split("/"):
            at = container.at("volumeMounts", number, "subPath")
            must = "stay in its volume: the API server refuses `..` and a leading /"
            yield context.error(at, must, below, "name it from the volume's root")


def _volume_sources(context: ManifestContext) -> Problems:
    for pod in context.workload.pods:
        for number, volume in enumerate(items(pod.spec.get("volumes"))):
            given = [key for key, value in volume.items() if value is not None]
            sources = [str(key) for key in given if key != "name"]
            if len(sources) > 1:
                yield context.error(
                    (*pod.path, "volumes", number, sources[-1]),
                    "be the only source of its volume: the API server refuses two",
                    f"{sources[-1]} beside {' and '.join(sources[:-1])}",
                    "delete hostPath"
                    if "hostPath" in sources
                    else "delete one of the two, or make a volume of it",
                )


def _volume_names(context: ManifestContext) -> Problems:
    for pod in context.workload.pods:
        names: set[str] = set()
        for number, volume in enumerate(items(pod.spec.get("volumes"))):
            name = str(volume.get("name"))
            if name in names:
                yield context.error(
                    (*pod.path, "volumes", number, "name"),
                    "be a name that no other volume of the pod has",
                    name,
                    f"rename one of the two, and the volumeMounts that mean it: {name}-2",
                )
            names.add(name)


def _topology_keys(context: ManifestContext) -> Problems:
    for path in context.workload.find("** topologyKey"):
        key = str(context.get(*path))
        if (label := _label_of_nodes(context, key)) and not is_preferred(context, path):
            yield context.error(path, "be a label that nodes have", key, f"write {label}")


def is_preferred(context: ManifestContext, path: Path) -> bool:
    """True for a topology that pods need not have."""
    anyway = context.get(*path[:-1], "whenUnsatisfiable") == "ScheduleAnyway"
    return anyway or any(str(step).startswith("preferred") for step in path)


def _label_of_nodes(context: ManifestContext, key: str) -> str | None:
    """Fix: the label to write instead of one that no node has."""
    matches = (re.sub(wrong, right, key) for wrong, right in LABELS if re.fullmatch(wrong, key))
    kind, label = context.instance_type, next(matches, None)
    return re.sub(r"(?<=-type: )[\w.-]+", kind.name, label) if kind and label else label


def _selectors(context: ManifestContext) -> Problems:
    """One term of each selector must fit a node."""
    for terms in context.workload.selectors:
        wrong = [list(_fits_no_node(context, term)) for term in terms]
        if all(wrong):
            yield from (error for errors in wrong for error in errors)


def _fits_no_node(context: ManifestContext, term: Sequence[Requirement]) -> Iterator[InputError]:
    """Errors about a term that no node anywhere fits. A requirement that a label is missing or
    another can hold."""
    for requirement in (r for r in term if r.operator in ("In", "Exists")):
        label = requirement.label
        if right := _label_of_nodes(context, label):
            is_pair = "-type: " in right
            fix = (
                f"delete it, or write in its place {right}" if is_pair else f"rename it to {right}"
            )
            yield context.error(requirement.path, "be a label that nodes have", label, fix)
        for value in requirement.values:
            if label.endswith("instance-type") and value.startswith(HYPERPOD):
                must = "be an instance type of EC2: names with ml. are of SageMaker HyperPod"
                fix = f"write {value.removeprefix(HYPERPOD)}"
                yield context.error(requirement.path, must, value, fix)
        regions = {*requirement.values} & {*ZONE_LETTERS}
        if label == "topology.kubernetes.io/zone" and {*requirement.values} == regions:
            for region in regions:
                fix = f"write one of {', '.join(every_zone_name(region))}"
                yield context.error(requirement.path, "be a zone, not a region", region, fix)


def _one_host(context: ManifestContext) -> Problems:
    room = context.instance_type.gpus if context.instance_type else 1
    pattern = "** podAffinity requiredDuringSchedulingIgnoredDuringExecution * topologyKey"
    for path in context.workload.find(pattern):
        one_host = context.get(*path) == "kubernetes.io/hostname"
        if one_host and context.nodes * context.gpus > room:
            yield context.error(
                path,
                f"not keep all pods on one node, which is sure of {room} GPUs only",
                f"{context.nodes} pods with {context.gpus} GPUs",
                "delete it; or write topology.kubernetes.io/zone, which keeps the pods in one zone"
                if context.instance_type
                else "use one pod with all GPUs, on a given node.kubernetes.io/instance-type",
            )


def _resource_names(context: ManifestContext, container: Container) -> Problems:
    for part in ("requests", "limits"):
        for name in mapping(look(container.body, "resources", part)).keys() & NO_RESOURCES:
            if part == "requests" and name in mapping(look(container.body, "resources", "limits")):
                continue  # said once
            fix = _renamed(container, part, NO_RESOURCES[name])
            path = container.at("resources", part, name)
            yield context.error(path, "be a resource that nodes have", name, fix)


def _renamed(container: Container, part: str, name: str) -> str:
    """Fix of a resource that nobody has: its right name, unless that stands there already."""
    there = look(container.body, "resources", part, name)
    return f"rename it to {name}" if there is None else f"delete it: {name}: {there} stands there"


def _other_devices(context: ManifestContext, container: Container) -> Problems:
    """Devices that need other images, drivers and nodes; said once for requests and limits."""
    places = {
        name: (part, name)
        for part in ("requests", "limits")
        for name in mapping(look(container.body, "resources", part))
    }
    for name, place in places.items():
        makers = [maker for start, maker in OTHER_DEVICES.items() if str(name).startswith(start)]
        for maker in makers:
            must = f"be a device of the nodes, whose GPUs are NVIDIA's: this one is of {maker}"
            fix = f"{_renamed(container, place[0], GPU)}, and use an image with CUDA"
            yield context.error(container.at("resources", *place), must, name, fix)


def has_its_own_error(resource: str) -> bool:
    """True for a resource whose error above is the same on every pool."""
    return resource in NO_RESOURCES or resource.startswith(tuple(OTHER_DEVICES))


def _set_twice(context: ManifestContext, container: Container) -> Problems:
    """A variable with two values. kubelet takes the last one (Kubernetes 1.35, kubelet_pods.go)."""
    seen: dict[str, object] = {}
    for number, entry in enumerate(items(container.body.get("env"))):
        name = str(entry.get("name"))
        if name in seen and seen[name] != entry:
            path = container.at("env", number, "name")
            text = f"{name} is set twice, and the last value counts; delete one of the two"
            yield context.warning(path, text)
        seen[name] = entry


def _is_wrong(context: ManifestContext, name: str, limits: Mapping[str, Any]) -> bool:
    """True of a limit with an error of its own: it has no value, or no node has so many GPUs."""
    if name in limits and limits[name] is None:
        return True
    gpus, kind = amount(limits.get(name)), context.instance_type
    return bool(name == GPU and gpus and kind and gpus > kind.gpus)


def _limits(context: ManifestContext, container: Container) -> Problems:
    """An extended resource is requested as it is limited; of another less may be requested."""
    requests, limits = (
        mapping(look(container.body, "resources", part)) for part in ("requests", "limits")
    )
    for name in sorted(requests.keys() - NO_RESOURCES.keys()):
        requested, limit = amount(requests[name]), amount(limits.get(name))
        at, is_device = container.at("resources", "requests", name), name in (GPU, EFA)
        if _is_wrong(context, name, limits):
            continue
        if is_device and requested != limit:
            of = f"equal to its limit ({limits[name]})" if name in limits else "in the limits, too"
            must = f"be {of}: an extended resource must"
            fix = f"write {name}: {limits.get(name, requests[name])} in both"
            yield context.error(at, must, requests[name], fix)
        elif requested and limit and requested > limit:
            must = f"be at most its limit ({limits[name]}): the API server refuses more"
            yield context.error(at, must, requests[name], f"write {name}: {limits[name]} in both")
        elif name == "memory" and requested and limit and requested < limit and context.gpus:
            yield context.warning(
                at,
                f"the pod may use more memory ({limits[name]}) than it requests ({requests[name]}):"
                " when the node runs out of memory, it is among the first to be killed",
            )


def _efa(context: ManifestContext, container: Container) -> Problems:
    """EFA devices of pods with all GPUs of a node. Each device is one of its network cards (EC2 user guide, EFA)."""
    kind, devices = context.instance_type, container.amount(EFA)
    if not kind or context.nodes < 2 or container.amount(GPU) != kind.gpus:
        return
    if kind.gpudirect and not devices:
        yield context.error(
            container.at("resources"),
            f"ask for EFA on {kind.name}: TCP carries at most {fabric.tcp_bound(kind):g} GB/s",
            f"no {EFA}",
            f"add {EFA}: {kind.efa} to requests and limits",
        )
    elif 0 < devices < kind.efa:
        yield context.warning(
            container.at("resources", "limits", EFA),
            f"{devices} of the {kind.efa} EFA devices of a {kind.name}: the nodes exchange data with"
            f" {100 * devices / kind.efa:.3g} % of its bandwidth; write {EFA}: {kind.efa} in requests and limits",
        )


def _privileged(context: ManifestContext, container: Container) -> Problems:
    kind = context.instance_type
    privileged = look(container.body, "securityContext", "privileged") is True
    if kind and 0 < context.gpus < kind.gpus and privileged:
        yield context.error(
            container.at("securityContext", "privileged"),
            f"not be set with {context.gpus} of {kind.gpus} GPUs:"
            " pods see all, and take the same ones",
            True,
            "delete it: EFA needs no privileges",
        )


def _restarts_for_ever(context: ManifestContext) -> Problems:
    """A pod that fails each time. kubelet starts its containers again, and only a limit makes the job
    fail (training-operator v1.8.1, pkg/core/job.go: PastBackoffLimit, PastActiveDeadline)."""
    if any(context.get("spec", "runPolicy", limit) is not None for limit in LIMITS):
        return
    for path in context.workload.find("spec * * restartPolicy"):
        if context.get(*path) == "OnFailure":
            yield context.warning(
                path,
                "OnFailure without runPolicy.backoffLimit restarts for ever and keeps its nodes; add"
                f" backoffLimit: {max(context.nodes, 1) * RESTARTS}, which counts the restarts of all"
                " pods together",
            )
            return


def _beside_the_trainer(context: ManifestContext) -> Problems:
    """Containers beside the one that trains. Jobs go by the phase of a pod, which is Running while one of its
    containers runs (training-operator v1.8.1, pkg/core/status.go, UpdateJobReplicaStatuses; so does the Job of a
    JobSet). Init containers that restart always are stopped with the others (Kubernetes 1.29 and later)."""
    for pod in context.workload.pods:
        names = [str(container.body.get("name")) for container in pod.containers]
        for name, container in zip(names, pod.containers, strict=True):
            if name not in TRAINS and {*TRAINS} & {*names}:
                yield context.warning(
                    container.path,
                    "the pod ends only when this container has ended, too: if it never does, the job keeps its nodes"
                    " after the training; make it one of initContainers with restartPolicy: Always, or let it end",
                )


WITH_HOST = "ClusterFirstWithHostNet"
"""Policy with which a pod of the node's network asks the cluster's DNS."""


def _names_of_nodes(context: ManifestContext) -> Problems:
    """Pods that do not ask the cluster's DNS, which alone knows the names by which nodes find the first one: those of
    the node's network ask the node's, unless they say otherwise (Kubernetes, pkg/kubelet/network/dns/dns.go,
    getPodDNSType; no controller of jobs sets it)."""
    for pod in context.workload.training_pods if context.nodes > 1 else ():
        policy, on_host = pod.spec.get("dnsPolicy"), pod.spec.get("hostNetwork") is True
        wrong = policy in (None, "ClusterFirst", "Default") if on_host else policy == "Default"
        trains = pod.role not in ("override", "trainer") and "initializer" not in pod.role
        if not wrong or not trains or pod.spec.get("dnsConfig") or pod.spec.get("hostAliases"):
            continue
        yield context.error(
            (*pod.path, "dnsPolicy" if policy else "hostNetwork"),
            f"go with the cluster's DNS on {context.nodes} nodes: the name server of a node does not know the address"
            " of the first pod, and all others wait for it",
            policy or "hostNetwork: true without dnsPolicy",
            (f"write {WITH_HOST}" if policy else f"add dnsPolicy: {WITH_HOST}")
            if on_host
            else "delete it",
        )
