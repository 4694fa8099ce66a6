"""Questions of `trainyard check --live` about an existing cluster, and what the answers mean. Requirements for
the cluster: trainyard/existing/cluster_faults.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from trainyard.existing.cluster_faults import AT, ClusterFound, faults, no_admin, remarks
from trainyard.live.existing.cluster_dns import dns_findings
from trainyard.live.existing.cni import cni_findings
from trainyard.live.existing.device_plugins import plugin_findings
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import once
from trainyard.live.reach import answers
from trainyard.live.taken_names import taken_findings
from trainyard.objects.iam.policies import ADMIN_POLICY
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.plans.networks import ExistingNetworkPlan
from trainyard.problems import At, InputError, InputWarning

Finding = InputError | InputWarning
Check = Callable[[], Iterable[Finding]]


def existing_cluster_checks(
    account: Account, plan: EnvironmentPlan, caller: str
) -> dict[str, Check]:
    """The questions by name; none where the stack makes its cluster."""
    if not isinstance(plan.cluster, ExistingClusterPlan):
        return {}
    cluster = plan.cluster
    me, name, every = plan.identity, cluster.name, [*cluster.add_ons, *cluster.made_add_ons]
    zones = [zone.name for zone in plan.network.zones]
    found = once(lambda: account.cluster(name, every, caller))
    checks: dict[str, Check] = {
        f"cluster {name}": lambda: [
            *faults(cluster, found()),
            *remarks(cluster, found()),
        ],
        f"admins of {name}": lambda: admin_findings(account, cluster, found()),
        f"builds of add-ons of {name}": lambda: build_findings(account, cluster, found()),
        f"VPC CNI of {name}": lambda: (
            cni_findings(account, cluster, found(), zones) if _lets_in(found()) else ()
        ),
        f"Karpenter in {name}": lambda: karpenter_findings(
            cluster, me.stack, account.karpenter_nodes(name)
        ),
        f"names that are taken in {name}": lambda: (
            taken_findings(account, plan, name) if _lets_in(found()) else ()
        ),
        f"device plugins of others in {name}": lambda: (
            plugin_findings(account, plan, name) if _lets_in(found()) else ()
        ),
    }
    network = plan.network
    if isinstance(network, ExistingNetworkPlan):
        checks[f"DNS of {name}"] = lambda: (
            dns_findings(account, cluster, network) if _lets_in(found()) else ()
        )
    if cluster.public and not plan.access.proxy_url:
        checks[f"who reaches {name}"] = lambda: reach_findings(
            cluster, found(), account.own_address()
        )
    return checks


def groups_of_nodes(account: Account, plan: EnvironmentPlan) -> tuple[str, ...]:
    """Security groups that all nodes of the stack carry and that exist before it: that of an existing cluster."""
    existing = isinstance(plan.cluster, ExistingClusterPlan)
    return account.cluster_groups(plan.cluster.name) if existing else ()


def _lets_in(found: ClusterFound | None) -> bool:
    """True where the API server can admit the caller. Where not, the errors about the cluster say
    why."""
    return found is not None and found.status in ("ACTIVE", "UPDATING") and found.caller_enters


def admin_findings(
    account: Account, cluster: ExistingClusterPlan, found: ClusterFound | None
) -> Iterator[Finding]:
    """A deployer that enters the cluster, but not as its admin. Groups of Kubernetes can have the same rights by a
    binding (EKS user guide, creating-access-entries), so they are a warning."""
    if not found or not found.caller_enters:
        return
    if ADMIN_POLICY in account.access_policies(cluster.name, found.caller):
        return
    if groups := account.access_groups(cluster.name, found.caller):
        yield At(f"{AT}.name").warning(
            f"{cluster.name} admits {found.caller} by the groups {', '.join(groups)} and not by the access policy of an"
            " admin. Nothing checks that a ClusterRoleBinding gives a group the role cluster-admin, which `pulumi up`"
            " needs"
        )
        return
    yield no_admin(cluster, found.caller)


def build_findings(
    account: Account, cluster: ExistingClusterPlan, found: ClusterFound | None
) -> Iterator[InputWarning]:
    """Add-ons of the owner whose build EKS offers no more for the cluster's version: an upgrade has
    left them behind."""
    for name in cluster.add_ons if found else ():
        there = found.add_ons.get(name) if found else None
        offered = account.add_on_builds(cluster.version, name) if there else []
        if there and offered and there.version not in offered:
            yield InputWarning(
                path=f"{AT}.existing_add_ons",
                text=(
                    f"EKS does not offer {name} {there.version}, which {cluster.name} has, for"
                    f" Kubernetes {cluster.version}; have its owner update the add-on, for example to"
                    f" {offered[0]}"
                ),
            )


def karpenter_findings(
    cluster: ExistingClusterPlan, stack: str, nodes: Sequence[Mapping[str, str]]
) -> Iterator[InputError]:
    """Nodes that another Karpenter has launched: two of them would act on each other's NodePools. One
    without nodes is found by its CRDs (taken_names.py)."""
    theirs = sorted(
        {tags["karpenter.sh/nodepool"] for tags in nodes if tags.get("trainyard:stack") != stack}
    )
    if theirs:
        yield InputError(
            path=f"{AT}.name",
            must="be a cluster without Karpenter: this stack installs its own",
            got=f"{cluster.name}, with nodes of {', '.join(theirs)}",
            fix="write the name of another cluster, or let the stack make one: delete name",
        )


def reach_findings(
    cluster: ExistingClusterPlan, found: ClusterFound | None, address: str
) -> Iterator[InputError]:
    """A public endpoint that does not answer this machine."""
    if found and found.public and not answers(found.public_ranges, address):
        listed = ",".join([*found.public_ranges, f"{address}/32"])
        option = f"endpointPublicAccess=true,publicAccessCidrs={listed}"
        yield InputError(
            path=f"{AT}.name",
            must="be a cluster that answers this machine, if `pulumi up` runs here",
            got=f"{cluster.name}, which answers {', '.join(found.public_ranges) or 'nobody'}; this"
            f" machine has {address}",
            fix=f"have its owner run `aws eks update-cluster-config --name {cluster.name}"
            f" --resources-vpc-config {option}`, or write endpoint: private with proxy_url or"
            " inside_vpc",
        )
