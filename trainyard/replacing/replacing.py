"""Resources that an update must not replace by accident: the cluster, stores, pools and runtimes
that are deployed. Why so: docs/decisions/0016-nothing-is-replaced-by-accident.md.

The stack file alone does not show a replacement, so `pulumi preview` and `pulumi up` ask these rules
and `trainyard check` does not. Removing something is no accident: the preview shows it as deleted, and
`data: keep` protects data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.parts.parts import METRICS
from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import SERVICE_CIDRS, ExistingNetworkPlan, ExistingZonePlan
from trainyard.plans.stores import StorePlan
from trainyard.problems import InputError, InputWarning
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.guarded import Change, Guarded, Setting, shown
from trainyard.replacing.kept_data import is_kept
from trainyard.stores.kinds import KINDS, AnyKind, plan_kind

CLUSTER = ("aws:eks/cluster:Cluster", "cluster-eksCluster")
"""Inside pulumi-eks's component."""
NODES = ("aws:eks/nodeGroup:NodeGroup", "system")
"""Names the cluster, whether the stack makes it or not."""
MANAGED = "metrics.managed_prometheus"
WORKSPACE = ("aws:amp/workspace:Workspace", "managed-prometheus")
KMS_KEY = "environment.kms_key_arn"
SERVICES = "kubernetesNetworkConfig.serviceIpv4Cidr"
"""Place of the range of its services there."""
VPC = ("aws:ec2/vpc:Vpc", "network")
SUBNET, PRIVATE = "aws:ec2/routeTableAssociation:RouteTableAssociation", "network-private-"
"""Resource that has the id of a private subnet: the engine tells outputs, and no ids."""
POOL = "trainyard:nodes:GpuPool"
"""Its NodePools and EC2NodeClasses have its name."""
RUNTIME = "kubernetes:trainer.kubeflow.org/v1alpha1:ClusterTrainingRuntime"
POLICY = "spec.template.spec.failurePolicy"
STORES = tuple(kind.holds_data for kind in KINDS.values())
TYPES = frozenset(
    {
        CLUSTER[0],
        NODES[0],
        VPC[0],
        WORKSPACE[0],
        SUBNET,
        POOL,
        RUNTIME,
        *STORES,
    }
)
"""Types of resources that the rules look at."""


def replacing_errors(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputError]:
    """Every replacement that the stack file does not allow."""
    for change in changes(plan, deployed):
        guarded = change.guarded
        if guarded.entry in plan.allow_replace and not guarded.kept and change.at_once:
            continue
        unprotect = f"data: delete under environment.{guarded.entry} and " if guarded.kept else ""
        yield InputError(
            path=change.path,
            must=f"{change.must}, or {guarded.lost}",
            got=change.got,
            fix=f"write {change.back} again; "
            + (
                f"if you want the replacement, write {unprotect}allow_replace: [{guarded.entry}]"
                " under environment"
                if change.at_once
                else "otherwise run pulumi destroy first, or write another stack file"
            ),
        )


def replacing_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """Entries of `environment.allow_replace` that allow nothing any more."""
    used = {change.guarded.entry for change in changes(plan, deployed)}
    for entry in plan.allow_replace if deployed.resources else ():
        if entry not in used:
            yield InputWarning(
                path="environment.allow_replace",
                text=(
                    f"this update does not replace {entry}. Delete the entry, or a later change can"
                    " replace it by accident"
                ),
            )


def growing_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """File systems that the update makes larger. FSx user guide, managing-storage-capacity."""
    for name, store in plan.stores.items():
        kind = plan_kind(store)
        for fixed in kind.fixed(f"environment.storage.{name}.{kind.name}", store):
            was = deployed.output(kind.holds_data, name, fixed.output)
            if fixed.grows and was is not None and float(was) < float(fixed.wanted):
                yield InputWarning(
                    path=fixed.path,
                    text=(
                        f"this update grows {name} from {shown(was)} to {fixed.wanted}, which took more than half"
                        " an hour where somebody measured it: jobs wait for some minutes of it. FSx then moves data"
                        " for hours or days, and takes the next change of size or speed after 6 hours. It cannot"
                        " become smaller again"
                    ),
                )


def changes(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[Change]:
    """Everything that the update would replace, whether it is allowed or not."""
    # A cluster goes before the next one comes. With it the engine ends the Kubernetes provider that must
    # delete what is in it (pulumi 3.259, Registry.Diff), and every `up` stops there.
    yield from (replace(change, at_once=False) for change in _cluster(plan, deployed))
    for name, store in plan.stores.items():
        yield from _store(name, store, plan, deployed)
    made = {name for name, store in plan.stores.items() if _has_resource(store)}
    # An existing file system is only read, under a name with a dot.
    were = {it for it in deployed.names(*STORES) if "." not in it and not is_kept(deployed, it)}
    for name in _renamed(were - plan.stores.keys(), made, deployed, *STORES):
        yield _rename(_guarded_store(name, keep=False), "environment.storage", name, plan.stores)
    for name in _renamed(deployed.names(POOL) - plan.pools.keys(), {*plan.pools}, deployed, POOL):
        pool = Guarded(
            entry=f"pools.{name}", lost=f"pool {name} is replaced, and the jobs on its nodes end"
        )
        yield _rename(pool, "environment.pools", name, plan.pools)
    yield from _runtimes(plan, deployed)
    yield from _history(plan, deployed)


def _cluster(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[Change]:
    """The name follows from region, network and zones (trainyard/derive/cluster.py). For another role
    EKS makes another cluster, too (roleArn of UpdateClusterConfig: there is none)."""
    name = deployed.output(*CLUSTER, "name") or deployed.output(*NODES, "clusterName")
    if name is None:
        return
    cluster = Guarded(
        entry="cluster", lost="the cluster is replaced, and every node and job in it ends"
    )
    if not plan.own_cluster or CLUSTER not in deployed.resources:
        yield from _other_cluster(plan, name, cluster, own=CLUSTER in deployed.resources)
        return
    if moved := _region(plan, deployed, CLUSTER) or _network(plan, deployed):
        yield moved.change(cluster)
    elif name != plan.cluster.name:
        yield Change(
            guarded=cluster,
            path="environment.network",
            must=f"have the zones that {name} was made in",
            got=", ".join(sorted(zone.name for zone in plan.network.zones)),
            back="those zones",
        )
    yield from _born_with(plan, deployed, cluster)


def _born_with(plan: EnvironmentPlan, deployed: Deployed, cluster: Guarded) -> Iterator[Change]:
    """A cluster's key, role and range of services, which EKS never changes."""
    had_key, key = _had_key(deployed, *CLUSTER), plan.identity.kms_key_arn
    if had_key and had_key != key:
        # EKS associates a key once: there is no call that changes it or takes it away.
        yield Setting(path=KMS_KEY, was=had_key, wanted=key).change(cluster)
    yield from _services(plan, deployed, cluster)
    own, boundary = plan.identity.name("control-plane"), plan.identity.permissions_boundary
    had = str(deployed.output(*CLUSTER, "roleArn")).endswith(f"/{own}")
    if had != bool(boundary):
        yield Change(
            guarded=cluster,
            path="environment.permissions_boundary",
            must="stay, as the control plane's role has one" if had else "not be set later",
            got=boundary or "nothing",
            back="it" if had else "no permissions_boundary",
        )


def _services(plan: EnvironmentPlan, deployed: Deployed, cluster: Guarded) -> Iterator[Change]:
    """Another range of services. A plan does not know the ranges of an existing VPC, so the component
    decides which of SERVICE_CIDRS is free."""
    was, wanted = deployed.output(*CLUSTER, SERVICES), plan.network.service_cidr
    if _network(plan, deployed) or (wanted is None and was in SERVICE_CIDRS):
        return
    if was not in (None, wanted):
        setting = Setting(path="environment.cluster.service_cidr", was=was, wanted=wanted)
        yield setting.change(cluster)


def _other_cluster(
    plan: EnvironmentPlan, name: str, guarded: Guarded, *, own: bool
) -> Iterator[Change]:
    """Another existing cluster, or a cluster of the stack in place of an existing one or the other way
    round: every object in it would move, which no update can do. `own`: the deployed one is the stack's."""
    if plan.own_cluster != own or name != plan.cluster.name:
        yield Change(
            guarded=guarded,
            path="environment.cluster.name",
            must="not be set later" if own else f"stay {name}",
            got=plan.cluster.name if not plan.own_cluster else "nothing",
            back="no name" if own else f"name: {name}",
        )


def _region(plan: EnvironmentPlan, deployed: Deployed, resource: tuple[str, str]) -> Setting | None:
    was, wanted = deployed.output(*resource, "region"), plan.identity.region
    return Setting(path="aws:region", was=was, wanted=wanted) if was not in (None, wanted) else None


def _network(plan: EnvironmentPlan, deployed: Deployed) -> Setting | None:
    """Another range, or another VPC. EC2 cannot give the gateways of one range to another one in the
    same update: the address of the NAT gateway is taken, and holds the internet gateway."""
    network = plan.network
    was = deployed.output(*VPC, "cidrBlock") or deployed.output(*CLUSTER, "vpcConfig.vpcId")
    existing = isinstance(network, ExistingNetworkPlan)
    path = f"environment.network.{'vpc_id' if existing else 'cidr'}"
    wanted = network.vpc_id if existing else network.cidr
    if was in (None, wanted):
        return None
    both_own = not existing and VPC in deployed.resources
    return Setting(path=path, was=was, wanted=wanted, at_once=not both_own)


def _subnet(plan: EnvironmentPlan, deployed: Deployed, was: str | None) -> Setting | None:
    """Another subnet of the training zone than `was`, or another training zone."""
    zone = plan.network.training_zone
    if isinstance(zone, ExistingZonePlan):
        path, wanted = f"environment.network.private_subnets.{zone.name}", zone.subnet_id
        return Setting(path=path, was=was, wanted=wanted) if was not in (None, wanted) else None
    letter = private_letters(deployed).get(was, zone.letter)
    if letter == zone.letter:
        return None
    return Setting(path="environment.zone", was=f"{plan.identity.region}{letter}", wanted=zone.name)


def private_letters(deployed: Deployed) -> dict[Any, str]:
    """Id of each private subnet of the stack → the letter of its zone."""
    return {
        deployed.output(SUBNET, name, "subnetId"): name.removeprefix(PRIVATE)
        for name in deployed.names(SUBNET)
        if name.startswith(PRIVATE)
    }


def _guarded_store(name: str, *, keep: bool) -> Guarded:
    lost = f"store {name} is replaced, and the data in it is lost"
    return Guarded(entry=f"storage.{name}", lost=lost, kept=keep)


def _has_resource(store: StorePlan) -> bool:
    """True where the stack makes what the data is in; a bucket can exist before."""
    kind = plan_kind(store)
    return kind.holds_data in kind.resource_types(store)


def _store(
    name: str, store: StorePlan, plan: EnvironmentPlan, deployed: Deployed
) -> Iterator[Change]:
    """Changes that make another store of one that keeps its name."""
    kind = plan_kind(store)
    stays = {kind.holds_data} if _has_resource(store) else set[str]()
    for other in KINDS.values():
        if (other.holds_data, name) in deployed.resources and other.holds_data not in stays:
            yield Change(
                guarded=_guarded_store(name, keep=is_kept(deployed, name)),
                path=f"environment.storage.{name}",
                must=f"stay the {other.name} store that the stack made",
                got=_of_another(kind, other),
                back=f"the settings of the {other.name} store",
            )
    for holds_data in stays:
        if (holds_data, name) in deployed.resources:
            guarded = _guarded_store(name, keep=store.keep)
            for setting in _settings_of(name, store, plan, deployed):
                yield setting.change(guarded)
            yield from _key_of(name, guarded, plan, deployed)


def _key_of(
    name: str, guarded: Guarded, plan: EnvironmentPlan, deployed: Deployed
) -> Iterator[Change]:
    """A KMS key where the store has another one. A store without one has AWS's own, whose ARN AWS
    tells all the same: so nothing is compared where the stack file names no key."""
    kind, key = plan_kind(plan.stores[name]), plan.identity.kms_key_arn
    was = _had_key(deployed, kind.holds_data, name)
    if kind.keeps_its_key and key and was not in (None, key):
        yield Change(
            guarded=guarded,
            path=KMS_KEY,
            must=f"not be set later, as {name} was made with another key",
            got=key,
            back="no kms_key_arn, or the key that the stack had",
        )


def _had_key(deployed: Deployed, kind: str, name: str) -> Any:
    """The KMS key of a deployed object. Its place in outputs is that in inputs."""
    return deployed.output(kind, name, AWS_TYPES[kind].key)


def _history(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[Change]:
    """The workspace of managed Prometheus, which keeps the key that it was made with."""
    metrics = METRICS.of(plan)
    managed = metrics.managed if metrics else None
    was, key = _had_key(deployed, *WORKSPACE) or None, plan.identity.kms_key_arn
    if managed and WORKSPACE in deployed.resources and was != key:
        lost = "the workspace is replaced, and the history of metrics is lost"
        guarded = Guarded(entry=MANAGED, lost=lost, kept=managed.keep)
        yield Setting(path=KMS_KEY, was=was, wanted=key).change(guarded)


def _of_another(kind: AnyKind, other: AnyKind) -> str:
    """The kind of a store that was of another one, or was the stack's own."""
    return f"one of {kind.name} that it did not make" if other.name == kind.name else kind.name


def _settings_of(
    name: str, store: StorePlan, plan: EnvironmentPlan, deployed: Deployed
) -> Iterator[Setting]:
    """Settings of a store that AWS makes another one for."""
    kind = plan_kind(store)
    resource = (kind.holds_data, name)
    moved = _region(plan, deployed, resource)
    if kind.zonal and not moved:
        subnets: Any = deployed.output(*resource, "subnetIds")
        subnet = subnets if isinstance(subnets, str) else next(iter(subnets or ()), None)
        moved = _network(plan, deployed) or _subnet(plan, deployed, subnet)
    if moved:
        yield moved
    for fixed in kind.fixed(f"environment.storage.{name}.{kind.name}", store):
        was = deployed.output(*resource, fixed.output)
        if fixed.differs(was):
            yield Setting(path=fixed.path, was=was, wanted=fixed.wanted)


def _renamed(gone: set[str], names: set[str], deployed: Deployed, *types: str) -> list[str]:
    """Objects that the stack file no longer has and that have a new one in their place."""
    return sorted(gone) if names - deployed.names(*types) else []


def _rename(guarded: Guarded, path: str, name: str, names: Any) -> Change:
    return Change(
        guarded=guarded,
        path=path,
        must=f"keep the name {name}",
        got=", ".join(sorted(names)),
        back=name,
    )


def _runtimes(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[Change]:
    """Runtimes with another name or another failure policy, which JobSet changes in no JobSet. The
    API server adds to a policy what the program leaves out."""

    def guarded(name: str) -> Guarded:
        lost = f"runtime {name} is replaced, which cannot end while a TrainJob uses it"
        return Guarded(entry=f"runtimes.{name}", lost=lost)

    path, upstream = "environment.trainer.own_runtimes", upstream_runtimes(plan.trainer.version)
    for runtime in plan.runtimes:
        wanted = runtime.spec["template"]["spec"].get("failurePolicy", {})
        was = deployed.output(RUNTIME, runtime.name, POLICY) or {}
        known = (RUNTIME, runtime.name) in deployed.resources
        if known and (bool(was) != bool(wanted) or not wanted.items() <= was.items()):
            setting = Setting(
                path=f"{path}.{runtime.name}.max_restarts",
                was=was.get("maxRestarts"),
                wanted=wanted.get("maxRestarts"),
            )
            yield setting.change(guarded(runtime.name))
    names = {runtime.name for runtime in plan.runtimes} - upstream.keys()
    gone = deployed.names(RUNTIME) - upstream.keys() - names
    for name in _renamed(gone, names, deployed, RUNTIME):
        yield _rename(guarded(name), path, name, names)
