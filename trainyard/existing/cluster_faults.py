"""Requirements for an existing cluster, and errors about one that does not meet them.

The component asks in every preview, `trainyard check --live` before it; both judge by this file. Sources:
EKS user guide, setting-up-access-entries (authentication modes), cluster-endpoint, eks-add-ons;
version skew policy of Kubernetes (kube-proxy); README of amazon-vpc-cni-k8s (network policies since
1.14); EKS user guide, cni-ipv6 (the family is chosen at creation) and automode.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainyard.catalog import versions
from trainyard.existing.cni import cni_of, env_of, strict, without_room
from trainyard.objects.iam.policies import ADMIN_POLICY
from trainyard.plans.clusters import ALWAYS_THERE, NETWORK_POLICY, ExistingClusterPlan
from trainyard.problems import At, InputError, InputWarning

AT = "environment.cluster"
CONFIG_MAP = "CONFIG_MAP"
"""Authentication mode without access entries."""
POLICY_CNI = (1, 14)
"""The first minor release of the VPC CNI that enforces NetworkPolicies."""
EFA_CNI = (1, 18, 5)
"""The first release of the VPC CNI that takes efa-only interfaces. An older one finds no address on such an
interface, fails, and the node never becomes Ready (amazon-vpc-cni-k8s, v1.18.3 and v1.18.5, pkg/awsutils/awsutils.go,
getENIMetadata; CHANGELOG.md, #3047)."""
OWN = "let the stack make one: delete name and existing_add_ons"
"""Middle of a fix for a cluster that cannot be changed."""
PROXY_SKEW = 3
"""Minor releases that kube-proxy may be behind the API server."""


@dataclass(frozen=True, kw_only=True)
class AddOnFound:
    """An add-on as EKS describes it."""

    version: str
    configuration: str
    """JSON or YAML; empty where nobody has set any."""
    tags: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ClusterFound:
    """A cluster as EKS describes it, and what was asked about it."""

    status: str
    version: str
    authentication_mode: str
    vpc_id: str
    public: bool
    """Callers outside of the VPC reach the endpoint."""
    private: bool
    """Nodes reach the endpoint inside the VPC."""
    public_ranges: tuple[str, ...]
    """Ranges that reach the public endpoint."""
    ip_family: str
    """ipv4 or ipv6: of the addresses of pods and services."""
    auto_mode: bool
    """EKS Auto Mode launches nodes in it."""
    add_ons: Mapping[str, AddOnFound]
    """Add-ons of the plan that exist, by name."""
    caller: str
    """ARN of the role or user that deploys."""
    caller_enters: bool
    """There is an access entry for it."""


def faults(plan: ExistingClusterPlan, found: ClusterFound | None) -> Iterator[InputError]:
    """Everything that is wrong. `found`: None where the region has no such cluster."""
    if found is None or found.status not in ("ACTIVE", "UPDATING"):
        yield At(f"{AT}.name").must(
            f"be an EKS cluster of this account in {plan.identity.region} that is ACTIVE",
            got=plan.name if found is None else f"{plan.name}, which is {found.status}",
            fix="write a name that `aws eks list-clusters` prints, or log in to its account",
        )
        return
    yield from _kind(plan, found)
    yield from _version(plan, found)
    yield from _place(plan, found)
    yield from _entrance(plan, found)
    yield from _add_ons(plan, found)
    if cni := found.add_ons.get("vpc-cni"):
        yield from without_room(plan, cni_of(env_of(cni.configuration)))


def remarks(plan: ExistingClusterPlan, found: ClusterFound | None) -> Iterator[InputWarning]:
    """Warnings about a cluster that can work."""
    cni = found.add_ons.get("vpc-cni") if found else None
    if (
        cni
        and enforces(cni.configuration)
        and (text := strict(plan.name, env_of(cni.configuration)))
    ):
        yield At(f"{AT}.name").warning(text)


def _kind(plan: ExistingClusterPlan, found: ClusterFound) -> Iterator[InputError]:
    """Errors about a cluster that no update of the stack could work with."""
    if found.ip_family != "ipv4":
        yield At(f"{AT}.name").must(
            "be a cluster whose pods and services have IPv4 addresses: those of network policies"
            " and subnets are",
            got=f"{plan.name}, whose ipFamily is {found.ip_family}",
            fix=f"write the name of another cluster, or {OWN}; EKS cannot change the family of a cluster",
        )
    if found.auto_mode:
        yield At(f"{AT}.name").must(
            "be a cluster without EKS Auto Mode: its Karpenter has the CRDs that this stack's"
            " Karpenter needs for itself",
            got=f"{plan.name}, whose computeConfig is enabled",
            fix=f"write the name of another cluster, or {OWN}; its owner can also turn Auto Mode off (EKS user"
            " guide, auto-disable), which ends the nodes that it has launched",
        )


def _version(plan: ExistingClusterPlan, found: ClusterFound) -> Iterator[InputError]:
    if found.version == plan.version:
        return
    known = found.version in versions.KUBERNETES
    yield At(f"{AT}.version").must(
        f"be the version of {plan.name}, whose owner upgrades it",
        got=f'"{plan.version}", and the cluster has "{found.version}"',
        fix=(
            f'write "{found.version}"'
            if known
            else f"have it upgraded to one of {', '.join(versions.KUBERNETES)}, or add a row to"
            " trainyard/catalog/versions.py"
        ),
    )


def _place(plan: ExistingClusterPlan, found: ClusterFound) -> Iterator[InputError]:
    """Nodes and control plane are in one VPC, and nodes reach the endpoint inside it."""
    if found.vpc_id != plan.vpc_id:
        yield At("environment.network.vpc_id").must(
            f"be the VPC of {plan.name}",
            got=f"{plan.vpc_id}, and the cluster is in {found.vpc_id}",
            fix=f"write {found.vpc_id}, with its subnets in private_subnets",
        )
    if not found.private:
        yield At(f"{AT}.name").must(
            "be a cluster whose endpoint nodes reach inside the VPC",
            got=f"{plan.name}, whose endpointPrivateAccess is false",
            fix=_update(plan, "--resources-vpc-config endpointPrivateAccess=true"),
        )
    if plan.public and not found.public:
        yield At(f"{AT}.endpoint").must(
            f"be private, as the endpoint of {plan.name} is",
            got="public-and-private",
            fix="write endpoint: private with proxy_url or inside_vpc",
        )


def _update(plan: ExistingClusterPlan, option: str) -> str:
    """A command for the owner of the cluster."""
    return (
        f"run `aws eks update-cluster-config --name {plan.name} --region {plan.identity.region}"
        f" {option}`"
    )


def _entrance(plan: ExistingClusterPlan, found: ClusterFound) -> Iterator[InputError]:
    """Access entries let nodes and the deployer in."""
    if found.authentication_mode == CONFIG_MAP:
        yield At(f"{AT}.name").must(
            "be a cluster that admits by access entries: authentication mode API or"
            " API_AND_CONFIG_MAP",
            got=f"{plan.name}, whose mode is {CONFIG_MAP}",
            fix=_update(plan, "--access-config authenticationMode=API_AND_CONFIG_MAP"),
        )
    elif not found.caller_enters:
        yield no_admin(plan, found.caller)


def no_admin(plan: ExistingClusterPlan, caller: str) -> InputError:
    """A deployer that the cluster does not admit, or not as its admin."""
    who = f"--cluster-name {plan.name} --region {plan.identity.region} --principal-arn {caller}"
    return At(f"{AT}.name").must(
        "be a cluster whose admin the deployer is",
        got=f"{plan.name}, which does not admit {caller} as an admin",
        fix=f"have an admin run `aws eks create-access-entry {who}` and `aws eks"
        f" associate-access-policy {who} --policy-arn {ADMIN_POLICY} --access-scope"
        " type=cluster`",
    )


def _add_ons(plan: ExistingClusterPlan, found: ClusterFound) -> Iterator[InputError]:
    """Errors about add-ons. Existing ones are kept as they are; missing ones are put beside
    them."""
    pinned = versions.KUBERNETES[plan.version].add_ons
    for name in plan.add_ons:
        there = found.add_ons.get(name)
        if there is None:
            yield At(f"{AT}.existing_add_ons").must(
                f"name add-ons that {plan.name} has; it needs {name} as an EKS add-on",
                got=f"no add-on {name}",
                # With OVERWRITE the add-on would have the defaults of EKS, and lose what its owner set (EKS API,
                # CreateAddon, resolveConflicts).
                fix=f"have the owner run `{_command(plan, 'create', name, pinned[name])}`, with"
                " --configuration-values and --service-account-role-arn of what runs today: it changes nothing"
                " where they differ, and says where",
            )
        elif why := _too_old(plan, name, there):
            yield At(f"{AT}.name").must(
                f"be a cluster whose {name} {why}",
                got=f"{name} {there.version}",
                fix=f"have the owner run `{_command(plan, 'update', name, pinned[name])}`",
            )
        elif name == "vpc-cni" and plan.network_policies and not enforces(there.configuration):
            option = f"--configuration-values '{json.dumps({NETWORK_POLICY: 'true'})}'"
            update = _command(plan, "update", name, there.version)
            yield At(f"{AT}.name").must(
                "be a cluster whose vpc-cni enforces NetworkPolicies, which keep teams apart",
                got=f"a configuration without {NETWORK_POLICY}",
                fix=f"have the owner run `{update} {option}`, with the values that it has beside it",
            )
    theirs = [name for name in plan.made_add_ons if _is_theirs(plan, found.add_ons.get(name))]
    if theirs:
        listed = [name for name in plan.add_ons if name not in ALWAYS_THERE]
        yield At(f"{AT}.existing_add_ons").must(
            f"list the add-ons that {plan.name} has and this environment uses",
            got=", ".join(listed) or "nothing",
            fix=f"write [{', '.join([*listed, *theirs])}]",
        )


def _is_theirs(plan: ExistingClusterPlan, add_on: AddOnFound | None) -> bool:
    """True where somebody else than this stack has made the add-on."""
    return add_on is not None and not plan.identity.owns(add_on.tags)


def _too_old(plan: ExistingClusterPlan, name: str, there: AddOnFound) -> str:
    """Requirement for the build; empty where it will do."""
    minor = versions.minor(there.version.removeprefix("v"))
    if name == "vpc-cni" and plan.network_policies and minor < POLICY_CNI:
        return f"is {POLICY_CNI[0]}.{POLICY_CNI[1]} or newer, which enforces NetworkPolicies"
    if name == "vpc-cni" and plan.efa and _parts(there.version) < EFA_CNI:
        return f"is {'.'.join(map(str, EFA_CNI))} or newer, which takes the EFA interfaces of its pools"
    behind = versions.minor(plan.version)[1] - minor[1]
    if name == "kube-proxy" and behind > PROXY_SKEW:
        return f"is at most {PROXY_SKEW} minor releases behind Kubernetes {plan.version}"
    return ""


def _parts(build: str) -> tuple[int, ...]:
    """The numbers of a build: (1, 18, 5) of v1.18.5-eksbuild.1."""
    return tuple(map(int, build.removeprefix("v").partition("-")[0].split(".")))


def enforces(configuration: str) -> bool:
    """True where a configuration of the VPC CNI, which is JSON or YAML, makes it enforce NetworkPolicies. Without
    that, its mode says nothing."""
    plain = configuration.replace('"', "").replace("'", "").replace(" ", "")
    return f"{NETWORK_POLICY}:true" in plain


def _command(plan: ExistingClusterPlan, verb: str, name: str, version: str) -> str:
    return (
        f"aws eks {verb}-addon --cluster-name {plan.name} --region {plan.identity.region}"
        f" --addon-name {name} --addon-version {version} --resolve-conflicts"
        f" {'PRESERVE' if verb == 'update' else 'NONE'}"
    )
