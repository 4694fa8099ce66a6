"""`trainyard check --live`: what only the account knows, asked before anything is created.

All questions (account.py) are asked at once. A question that is denied, or has no answer when the
time is over, is a warning; only who asks must be known. Roles of the stack file are assumed first,
as the AWS provider does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from itertools import product
from threading import Thread
from time import monotonic
from typing import Any

from trainyard.catalog.versions import BOTTLEROCKET_RELEASE
from trainyard.derive.credentials import NotAssumed
from trainyard.live.backups import backup_checks
from trainyard.live.boundary import boundary_checks
from trainyard.live.copies import copy_checks, image_checks
from trainyard.live.cost_tag import cost_tag_checks
from trainyard.live.encryption import bucket_key_warnings, default_key_checks, key_checks
from trainyard.live.endpoint_zones import endpoint_zone_checks
from trainyard.live.existing.cluster import existing_cluster_checks
from trainyard.live.existing.free_addresses import address_checks
from trainyard.live.existing.stores import store_checks
from trainyard.live.existing.vpc import vpc_checks
from trainyard.live.log_group import log_group_checks
from trainyard.live.principals import principal_checks
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.quotas import (
    disk_checks,
    lustre_checks,
    public_address_checks,
    quota_checks,
    vpc_quota_checks,
)
from trainyard.live.reach import address_errors, asks_address, first_update_errors
from trainyard.live.releases import (
    ami_errors,
    amis,
    bottlerocket_errors,
    build_errors,
    with_bottlerocket,
)
from trainyard.live.secrets import secret_checks
from trainyard.live.service_roles import role_findings, service_roles
from trainyard.live.state import back_end, state_checks
from trainyard.live.zone_choice import eks_zone_errors, instead, system_type_errors
from trainyard.objects.iam.policies import same_role
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.access import NamedRole
from trainyard.problems import REMOVE, InputError, InputWarning
from trainyard.rules.access import account_findings, entry_findings, role_finding
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.pools import PoolConfig, ReservationConfig

COMING = ("scheduled", "pending", "payment-pending", "assessing", "delayed")
"""States of a reservation that may still become active (EC2 API, CapacityReservation)."""
Finding = InputError | InputWarning
Check = Callable[[], Iterable[Finding]]


def preflight(
    account: Account,
    plan: EnvironmentPlan | TeamPlan,
    wanted: EnvironmentConfig | None,
    deadline: float,
) -> list[Finding]:
    """Every error and warning that the account's answers give. `wanted`: None for a team.
    `deadline`: seconds for all questions together."""
    until, callers = monotonic() + deadline, list[str]()

    def caller_findings() -> Iterator[Finding]:
        try:
            caller = account.caller_arn()
        except NotAssumed as refused:
            yield role_finding(plan.access, refused)
            return
        except NotAnswered as reason:
            yield InputError(
                path="account",
                must="say who the caller is; nothing in the account was checked",
                got=str(reason),
                fix="log in, for example with `aws sso login`, or leave --live out",
            )
            return
        only = "only its copies of images are" if plan.copies else "nothing more is"
        more = f"; {only} checked for a team" if wanted is None else ""
        yield InputWarning(path="account", text=f"the caller is {caller}{more}")
        if wrong := [*account_findings(plan.access, caller)]:
            yield from wrong
        else:
            callers.append(caller)

    findings = _answers({"the caller": caller_findings}, until, deadline)
    # Without the caller's identity nothing else can be asked; of a wrong account nothing is.
    if callers and wanted and isinstance(plan, EnvironmentPlan):
        findings += _answers(checks(account, plan, wanted, callers[0]), until, deadline)
    elif callers and isinstance(plan, TeamPlan):
        findings += _answers(copy_checks(account, plan), until, deadline)
    return list(dict.fromkeys(findings))


def _answers(questions: Mapping[str, Check], until: float, deadline: float) -> list[Finding]:
    """The answers that come in time, and a warning for each question without one. A thread that
    still waits does not keep the program from ending."""
    asked: dict[str, Future[list[Finding]]] = {name: Future() for name in questions}
    for name, check in questions.items():
        Thread(target=_answer, args=(check, asked[name]), daemon=True).start()
    wait(asked.values(), timeout=max(0.0, until - monotonic()))
    return [
        finding
        for name, answer in asked.items()
        for finding in (
            answer.result()
            if answer.done()
            else [
                InputWarning(
                    path="account",
                    text=f"no answer in {deadline:g} s, so this is not checked: {name}",
                )
            ]
        )
    ]


def _answer(check: Check, answer: Future[list[Finding]]) -> None:
    try:
        answer.set_result([*check()])
    except NotAnswered as reason:
        answer.set_result([InputWarning(path="account", text=f"a question failed: {reason}")])
    except Exception as error:  # a defect of this program, raised where the answer is read
        answer.set_exception(error)


def checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig, caller: str
) -> dict[str, Check]:
    """The questions of an environment by name; each asks when it is called, and judges the
    answer."""
    of_pools = {kind.instance_type for pool in plan.pools.values() for kind in pool.types}
    types = sorted({plan.system_nodes.instance_type, *of_pools})
    return {
        **(
            existing_cluster_checks(account, plan, caller) or _cluster_checks(account, plan, caller)
        ),
        **vpc_checks(account, plan, wanted),
        **endpoint_zone_checks(account, plan.network),
        **store_checks(account, plan, wanted),
        **backup_checks(account, plan),
        **vpc_quota_checks(account, plan.network),
        **public_address_checks(account, plan.network),
        **state_checks(account, back_end()),
        "zones": lambda: zone_findings(plan, wanted.zone_id, account.zones()),
        "instance types on offer": lambda: offer_findings(plan, account.offers(types)),
        **quota_checks(account, plan),
        **lustre_checks(account, plan),
        **disk_checks(account, plan, wanted),
        **_reservation_checks(account, plan, wanted),
        **_release_checks(account, plan),
        **key_checks(account, plan),
        **default_key_checks(account, plan),
        "keys of buckets": lambda: bucket_key_warnings(plan, caller),
        **boundary_checks(account, plan, caller),
        **copy_checks(account, plan),
        **image_checks(account, plan, caller),
        **cost_tag_checks(account, plan),
        **log_group_checks(account, plan),
        **secret_checks(account, plan, wanted),
        **{
            f"role {role.name}": lambda role=role: role_findings(
                plan, role, account.has_role(role.name)
            )
            for role in service_roles(plan)
        },
        **principal_checks(account, wanted, caller),
        **address_checks(account, plan),
    }


def _cluster_checks(account: Account, plan: EnvironmentPlan, caller: str) -> dict[str, Check]:
    cluster, role = plan.cluster.name, plan.access.role_arn
    found: dict[str, Check] = {
        f"the cluster that {each.setting}.{each.name} may have created": lambda each=each: (
            creator_findings(each, account.has_cluster(cluster))
        )
        for each in plan.cluster.roles
        if same_role(each.arn, caller)
    }
    if asks_address(plan):
        found["this machine's public address"] = lambda: address_errors(plan, account.own_address())
    if not plan.cluster.public:
        found["whether the private cluster exists"] = lambda: first_update_errors(
            plan, account.has_cluster(cluster)
        )
    if role:
        found[f"access entry of {role}"] = lambda: entry_findings(
            plan.access.region,
            cluster,
            role,
            not account.has_cluster(cluster) or account.has_entry(cluster, role),
        )
    return found


def _reservation_checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig
) -> dict[str, Check]:
    return {
        f"reservation {reservation.id}": lambda name=name, pool=pool, reservation=reservation: (
            reservation_findings(
                f"environment.pools.{name}",
                pool,
                reservation,
                plan.zone,
                account.reservation(reservation.id),
            )
        )
        for name, pool in wanted.pools.items()
        if (reservation := pool.reservation)
    }


def _release_checks(account: Account, plan: EnvironmentPlan) -> dict[str, Check]:
    version = plan.cluster.version
    builds: dict[str, Check] = {
        f"builds of add-on {add_on.name}": lambda add_on=add_on: build_errors(
            plan, add_on, account.add_on_builds(version, add_on.name)
        )
        for add_on in plan.add_ons.every
    }
    images: dict[str, Check] = {
        f"AMI {variant} of {release}": lambda variant=variant, release=release: ami_errors(
            plan,
            variant,
            release,
            account.recommended_ami(version, variant),
            account.kubelet_of_ami(version, variant, release),
        )
        for variant, release in amis(plan)
    }
    if with_bottlerocket(plan):
        images[f"AMI of Bottlerocket {BOTTLEROCKET_RELEASE}"] = lambda: bottlerocket_errors(
            plan, there=account.has_bottlerocket(version, BOTTLEROCKET_RELEASE)
        )
    return builds | images


def creator_findings(role: NamedRole, cluster_exists: bool) -> Iterator[InputError]:
    """A role that is the caller, who is about to create the cluster: EKS makes the creator an
    admin, and answers 409 to a second access entry."""
    if not cluster_exists:
        yield InputError(
            path=role.path,
            must="not be the caller's own role, which creates the cluster: EKS makes it an admin",
            got=role.arn,
            fix="delete it",
            write=REMOVE,
        )


def zone_findings(
    plan: EnvironmentPlan, zone_id: str | None, zones: Mapping[str, str]
) -> Iterator[Finding]:
    """Zones that the account lacks, and another zone id. The letters of zones differ from account
    to account: in which there are, and in which zone they mean. The zones of an existing VPC's
    subnets are judged in trainyard/existing/vpc_faults.py."""
    if plan.own_network:
        yield from _own_zone_errors(plan, zones)
    mine = zones.get(plan.zone)
    if mine and zone_id is None:
        yield InputWarning(
            path="environment.zone_id",
            text=f"it is not set; add this line to the stack file: zone_id: {mine}",
        )
    elif mine and zone_id != mine:
        yield InputError(
            path="environment.zone_id",
            must=f"be the id of {plan.zone} in this account",
            got=str(zone_id),
            fix=f"write {mine}",
            write=mine,
        )


def _own_zone_errors(plan: EnvironmentPlan, zones: Mapping[str, str]) -> Iterator[InputError]:
    """Zones in which the stack cannot make subnets, or EKS no control plane."""
    for missing in [zone.name for zone in plan.network.zones if zone.name not in zones]:
        yield InputError(
            path=f"environment.{'zone' if missing == plan.zone else 'network.zones'}",
            must=f"be available to this account, which has {', '.join(sorted(zones)) or 'none'}",
            got=missing,
            fix=instead(plan, zones),
        )
    yield from eks_zone_errors(plan, zones)


def offer_findings(
    plan: EnvironmentPlan, offers: Mapping[str, Iterable[str]]
) -> Iterator[InputError]:
    """Instance types that the account is not offered: of a pool in its zones, of system nodes in those of
    the network."""
    system = plan.system_nodes.instance_type
    yield from system_type_errors(plan, tuple(offers.get(system, ())))
    for name, pool in plan.pools.items():
        for kind, zone in product([kind.instance_type for kind in pool.types], pool.zones):
            sold = sorted(offers.get(kind, ()))
            if zone not in sold:
                setting = "instance_types" if zone == plan.zone else "fallback_zones"
                yield InputError(
                    path=f"environment.pools.{name}.{setting}",
                    must=f"be on offer to this account in {zone}",
                    got=kind,
                    fix=(
                        f"take a zone that has it: {', '.join(sold)}"
                        if sold
                        else f"take another type: no zone of {plan.identity.region} has it"
                    ),
                )


def reservation_findings(
    path: str,
    pool: PoolConfig,
    reservation: ReservationConfig,
    zone: str,
    described: Mapping[str, Any],
) -> Iterator[Finding]:
    """Differences between a reservation and the stack file. `described`: as EC2 describes it; empty
    where EC2 does not know it."""
    state = described.get("State", "unknown to this account")
    if state not in ("active", *COMING):
        yield InputError(
            path=f"{path}.reservation.id",
            must="be a reservation that is active or will be",
            got=f"{reservation.id}, {state}",
            fix="write the id of another reservation, or delete the pool",
        )
        return
    starts, total = described.get("StartDate"), described["TotalInstanceCount"]
    yield InputWarning(
        path=f"{path}.reservation",
        text=(
            f"{described['AvailableInstanceCount']} of {total} instances are free"
            if state == "active"
            else f"the reservation is {state}; jobs of the pool wait until"
            f" {starts or 'it is active'}"
        ),
    )
    for setting, configured, actual in _compared(path, pool, reservation, zone, described):
        if configured != actual:
            yield InputError(
                path=setting,
                must=f"agree with {reservation.id}",
                got="nothing" if configured is None else str(configured),
                fix="delete it" if actual is None else f"write {actual}",
                write=REMOVE if actual is None else actual,
            )


def _compared(
    path: str,
    pool: PoolConfig,
    reservation: ReservationConfig,
    zone: str,
    described: Mapping[str, Any],
) -> Iterator[tuple[str, Any, Any]]:
    """(setting, what the stack file says, what EC2 says) of a reservation."""
    block = described.get("ReservationType") == "capacity-block"
    total, starts = described["TotalInstanceCount"], described.get("StartDate")
    group = described.get("PlacementGroupArn", "").rpartition("/")[2]
    yield f"{path}.instance_types", pool.instance_types[0], described["InstanceType"]
    yield "environment.zone", zone, described["AvailabilityZone"]
    yield f"{path}.capacity", pool.capacity, "block" if block else "reservation"
    yield f"{path}.reservation.starts", reservation.starts, starts if reservation.starts else None
    yield f"{path}.reservation.ends", reservation.ends, described.get("EndDate")
    yield f"{path}.reservation.placement_group", reservation.placement_group, group or None
    yield f"{path}.max_nodes", max(pool.max_nodes, total), total
