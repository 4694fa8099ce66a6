"""Objects that a file names: each is in the file, made by the stack, part of every cluster, or somebody
must make it before the job starts.

Sources: Kubernetes 1.35 (plugin/pkg/admission/{serviceaccount,priority,runtimeclass}: the API server refuses
the pod; kubelet's volume manager: the pod waits), Karpenter v1.14.1 (scheduling/scheduler.go: pods with
resource claims get no node, IgnoreDRARequests), training-operator v1.8.1 and Trainer v2.1.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainyard.catalog.logs.missing_secrets import FIRST_DAY
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Path
from trainyard.manifests.names.around import Around
from trainyard.objects.iam.secrets import DRIVER
from trainyard.objects.teams.team_identity import SERVICE_ACCOUNT
from trainyard.problems import InputError, InputWarning, one_of

DEFAULT_SCHEDULER = "default-scheduler"
OF_THE_SYSTEM = ("system-cluster-critical", "system-node-critical")
"""PriorityClasses of every cluster."""
OF_A_NAMESPACE = ("kube-root-ca.crt",)
"""ConfigMaps of every namespace."""
HOST = "kubernetes.io/hostname"
"""Label with the name of a node."""
FREE = ("labels", "annotations", "matchLabels")
"""Fields whose keys are free, so that one may be called as a reference is."""
WAIT = "its pods wait in ContainerCreating on nodes that cost"
FAIL = "its containers wait in CreateContainerConfigError on nodes that cost"
REFUSED = "the API server refuses every pod"
BEFORE = "create it before `pulumi up`; in a new environment run `pulumi up` without the job first"
HERE = f"create it in namespace {{namespace}} before `pulumi up`; {FIRST_DAY}"


def _none(around: Around) -> Iterable[str]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A place where a job names an object."""

    kind: str
    places: tuple[str, ...]
    """Patterns of the fields with the name."""
    missing: str
    """Result of the missing object for the job."""
    way: str
    """Advice, from a verb on."""
    known: Callable[[Around], Iterable[str]] = _none
    """Names that need no object of the file."""
    must: str = ""
    """Error in the place of the warning, where nothing makes such an object or serves it."""
    of_teams: str = ""
    """Error in the namespace of a team, whose admission policy refuses another name."""


def _accounts(around: Around) -> Iterable[str]:
    return (SERVICE_ACCOUNT,)


def _priorities(around: Around) -> Iterable[str]:
    return (*around.priorities, *(() if around.team else OF_THE_SYSTEM))


_SCHEDULER = (
    f"be {DEFAULT_SCHEDULER}, which is the only scheduler of the cluster: pods of another stay Pending, and"
    " Karpenter launches no node for them"
)
REFERENCES: tuple[Reference, ...] = (
    Reference(
        kind="ServiceAccount",
        places=("** serviceAccountName", "** serviceAccount"),
        known=_accounts,
        missing=REFUSED,
        way=f"delete it, which means default, or {HERE}",
        of_teams=f"be {SERVICE_ACCOUNT}: a team's namespace admits pods of no other service account",
    ),
    Reference(
        kind="ConfigMap",
        places=("** volumes * configMap name", "** volumes * projected sources * configMap name"),
        known=lambda around: OF_A_NAMESPACE,
        missing=WAIT,
        way=f"put it into the file, or {HERE}",
    ),
    Reference(
        kind="ConfigMap",
        places=("** env * valueFrom configMapKeyRef name", "** envFrom * configMapRef name"),
        known=lambda around: OF_A_NAMESPACE,
        missing=FAIL,
        way=f"put it into the file, or {HERE}",
    ),
    Reference(
        kind="Secret",
        places=("** volumes * secret secretName", "** volumes * projected sources * secret name"),
        missing=WAIT,
        way=HERE,
    ),
    Reference(
        kind="Secret",
        places=("** env * valueFrom secretKeyRef name", "** envFrom * secretRef name"),
        missing=FAIL,
        way=HERE,
    ),
    Reference(
        kind="Secret",
        places=("** imagePullSecrets * name",),
        missing="kubelet pulls without it, and a private image fails with ImagePullBackOff",
        way=f"delete it for images of ECR, or {HERE}",
    ),
    Reference(
        kind="Secret",
        places=("spec initializer * secretRef name",),
        missing="the pod of the initializer does not start, and all others wait for it",
        way=HERE,
    ),
    Reference(
        kind="Secret",
        places=("** nodePublishSecretRef name", "** volumes * * secretRef name"),
        missing=WAIT,
        way=HERE,
    ),
    Reference(
        kind="PriorityClass",
        places=("** priorityClassName",),
        known=_priorities,
        missing=REFUSED,
        way="delete it, or add it to environment.priorities",
        of_teams="be one of the team's allowed_priorities: its namespace admits pods of no other",
    ),
    Reference(
        kind="RuntimeClass",
        places=("** runtimeClassName",),
        missing=REFUSED,
        way="delete it: nodes with GPUs run every container with NVIDIA's runtime",
    ),
    Reference(
        kind="StorageClass",
        places=(
            "** volumeClaimTemplate spec storageClassName",
            "** templates * spec storageClassName",
        ),
        missing="its pods stay Pending, because no driver makes the volume",
        way="use `claims`, or local disk: emptyDir: {}",
    ),
    Reference(
        kind="VolumeAttributesClass",
        places=("** volumeAttributesClassName",),
        missing="the volume stays as it is",
        way="delete it",
    ),
    Reference(
        kind="ClusterTrustBundle",
        places=("** projected sources * clusterTrustBundle name",),
        missing=WAIT,
        way=BEFORE,
    ),
    Reference(
        kind="CSI driver",
        places=("** volumes * csi driver",),
        known=lambda around: (DRIVER,),  # has an error of its own
        missing=f"no node has it, and {WAIT}",
        way="use a store: a persistentVolumeClaim, and `claims` beside `manifest`",
    ),
    Reference(
        kind="NFS server",
        places=("** volumes * nfs server",),
        missing=f"where nobody serves it to the subnets of pods, {WAIT}",
        way="use an EFS store: a persistentVolumeClaim, and `claims` beside `manifest`",
    ),
    Reference(
        kind="profile",
        places=("** seccompProfile localhostProfile", "** appArmorProfile localhostProfile"),
        missing=f"no node has the file, and {FAIL}",
        way="delete it, and write type: RuntimeDefault",
    ),
    Reference(
        kind="scheduler",
        places=("** schedulerName",),
        known=lambda around: (DEFAULT_SCHEDULER,),
        missing="its pods stay Pending, and Karpenter launches no node for them",
        way="delete it: queues start whole gangs (environment.queues)",
        must=_SCHEDULER,
    ),
    Reference(
        kind="node",
        places=("** nodeName",),
        missing="its pods never run, as Karpenter gives new nodes other names",
        way="delete it, and select nodes by nodeSelector",
        must="not be set: nobody knows the names of nodes that Karpenter launches",
    ),
    Reference(
        kind="node",
        places=(f"** nodeSelector {HOST}", "** nodeSelectorTerms * matchExpressions * values *"),
        missing="its pods stay Pending, unless that node runs already",
        way="delete it: Karpenter gives new nodes other names",
    ),
    *(
        Reference(
            kind=kind,
            places=(f"** resourceClaims * {field}", f"** resourceClaims * source {field}"),
            missing="its pods stay Pending, because Karpenter launches no node for a pod with resource claims",
            way="delete resourceClaims, and ask for nvidia.com/gpu in limits",
            must="not be set: Karpenter launches no node for a pod with resource claims",
        )
        for kind, field in (
            ("ResourceClaim", "resourceClaimName"),
            ("ResourceClaimTemplate", "resourceClaimTemplateName"),
        )
    ),
)
"""Every reference of a job to an object, but those to a claim, a runtime and a queue, which the stack
gives."""


def object_problems(
    contexts: Sequence[ManifestContext], around: Around
) -> Iterator[InputError | InputWarning]:
    """The problem of each object that nobody makes, once, where the file names it first."""
    said: set[tuple[str, str]] = set()
    for context in contexts:
        for reference in REFERENCES:
            for path in _places(context, reference):
                name = str(context.get(*path))
                if (reference.kind, name) not in said and not _is_known(reference, name, around):
                    said.add((reference.kind, name))
                    yield _problem(context, path, reference, around)


def _places(context: ManifestContext, reference: Reference) -> Iterator[Path]:
    """Paths of the names, but those that pods start without."""
    for pattern in reference.places:
        for path in context.workload.find(pattern):
            in_text = path[0] == "metadata" or {*FREE} & {*path}
            if in_text or context.get(*path[:-1], "optional") is True:
                continue
            if context.get(*path) and _is_a_host(context, path):
                yield path


def _is_a_host(context: ManifestContext, path: Path) -> bool:
    """True for a value of an affinity to a node by its name, and for whatever is no value of an affinity."""
    if "matchExpressions" not in path:
        return True
    return context.get(*path[:-2], "key") == HOST and context.get(*path[:-2], "operator") == "In"


def _is_known(reference: Reference, name: str, around: Around) -> bool:
    by_hand = not reference.must and around.has(reference.kind, name)
    return by_hand or name in reference.known(around)


def _problem(
    context: ManifestContext, path: Path, reference: Reference, around: Around
) -> InputError | InputWarning:
    name = context.get(*path)
    way = reference.way.replace("{namespace}", around.namespace)
    must = (reference.of_teams if around.team else "") or reference.must
    if must and (around.team or not around.others_may_serve):
        known = one_of(reference.known(around), "")
        fix = f"delete it, or write {known}" if reference.of_teams and known else way
        return context.error(path, must, name, fix if reference.of_teams else way)
    return context.warning(
        path,
        f"neither the file nor the stack makes {reference.kind} {name}: {reference.missing}; {way}",
    )
