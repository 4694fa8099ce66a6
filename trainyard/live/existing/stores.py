"""Questions of `trainyard check --live` about existing stores, and what the answers mean. Requirements for
file systems: trainyard/existing/store_faults.py. Room for checkpoints: free_room.py. Policies of
EFS: efs_policy.py. Buckets: buckets.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from trainyard.existing.store_faults import Client, StoreFound, efs_faults, lustre_faults
from trainyard.live.existing.buckets import bucket_checks
from trainyard.live.existing.cluster import groups_of_nodes
from trainyard.live.existing.efs_policy import policy_warnings
from trainyard.live.existing.free_room import needs, room_findings
from trainyard.live.questions.account import Account
from trainyard.plan import EnvironmentPlan
from trainyard.plans.networks import NODES, ExistingNetworkPlan
from trainyard.plans.stores import ExistingEfsPlan, ExistingLustrePlan, ExistingStorePlan
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig

Finding = InputError | InputWarning
Check = Callable[[], Iterator[Finding]]


def store_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Check]:
    """The questions by name; none where the stack makes its stores."""
    return {**_file_system_checks(account, plan, wanted), **bucket_checks(account, plan, wanted)}


def _file_system_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Check]:
    if not isinstance(plan.network, ExistingNetworkPlan):
        return {}
    network: ExistingNetworkPlan = plan.network
    stores = {
        name: store for name, store in plan.stores.items() if isinstance(store, ExistingStorePlan)
    }

    def findings(name: str, store: ExistingStorePlan) -> Iterator[Finding]:
        told = found(account, store)
        nodes = clients(account, network, store, groups_of_nodes(account, plan))
        yield from store_findings(store, network.vpc_id, nodes, told)
        if told and told.capacity_gib:
            yield from room_findings(account, store, told.capacity_gib, needs(name, wanted))

    def policy(store: ExistingEfsPlan) -> Iterator[Finding]:
        yield from policy_warnings(store, account.efs_policy(store.file_system_id))

    # A question of its own: whoever may not read policies hears the other findings all the same.
    return {
        f"file system {store.file_system_id}": partial(findings, name, store)
        for name, store in stores.items()
    } | {
        f"policy of file system {store.file_system_id}": partial(policy, store)
        for store in stores.values()
        if isinstance(store, ExistingEfsPlan)
    }


def found(account: Account, store: ExistingStorePlan) -> StoreFound | None:
    """As AWS describes it."""
    lustre = isinstance(store, ExistingLustrePlan)
    ask = account.lustre_file_system if lustre else account.efs_file_system
    return ask(store.file_system_id)


def clients(
    account: Account,
    network: ExistingNetworkPlan,
    store: ExistingStorePlan,
    carried: tuple[str, ...],
) -> tuple[Client, ...]:
    """The nodes that mount it: those of pools, and with `teams: apart` on Lustre the system nodes. A
    subnet that does not exist is an error of the network. `carried`: security groups of all nodes."""
    subnets = {zone.name: zone.subnet_id for zone in network.zones}
    every = store.apart and isinstance(store, ExistingLustrePlan)
    zones = [*store.zones, *(zone for zone in subnets if zone not in store.zones and every)]
    vpc = account.vpc(network.vpc_id, [subnets[zone] for zone in zones])
    ranges = {id_: subnet.cidr for id_, subnet in (vpc.subnets if vpc else {}).items()}
    groups = account.group_ids(network.vpc_id, network.identity.name(NODES))
    return tuple(
        Client(zone=zone, cidr=ranges[subnets[zone]], groups=(*groups, *carried))
        for zone in zones
        if subnets[zone] in ranges
    )


def store_findings(
    store: ExistingStorePlan, vpc_id: str, nodes: tuple[Client, ...], told: StoreFound | None
) -> Iterator[Finding]:
    """Everything that is wrong with it, and what should be known. `told`: None where there is none."""
    if isinstance(store, ExistingLustrePlan):
        errors = [*lustre_faults(store, vpc_id, nodes, told)]
    else:
        assert isinstance(store, ExistingEfsPlan)
        errors = [*efs_faults(store, vpc_id, nodes, told)]
    yield from errors
    if told and told.root_becomes:
        yield At(store.path).warning(_squashed(store, told))
    if told and told.deployment and not errors:
        lost = ", which loses data with a server" if told.deployment.startswith("SCRATCH") else ""
        yield InputWarning(path=store.path, text=f"it is {told.deployment}{lost}")


def _squashed(store: ExistingStorePlan, told: StoreFound) -> str:
    """A sentence about root squash (FSx for Lustre user guide, root-squash; FSx API, LustreRootSquashConfiguration).
    It is no error, because directories can be open to everybody."""
    all_but = f", but for clients {', '.join(told.root_stays)}" if told.root_stays else ""
    apart = (
        ", and the pods of this stack that make the directories of teams run as root"
        if store.apart
        else ""
    )
    return (
        f"{store.file_system_id} has root squash: pods that run as root write to it as {told.root_becomes}{all_but},"
        f" and fail in directories that are not open to that user{apart}. Have its owner run `aws fsx"
        f" update-file-system --file-system-id {store.file_system_id} --lustre-configuration"
        f" RootSquashConfiguration={{RootSquash=0:0}}`,"
        " or name the nodes' addresses in NoSquashNids"
    )
