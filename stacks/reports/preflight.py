"""`make check LIVE=1`: what only the account knows, asked before anything is created. It reads and
never writes.

All questions are asked at once; one that is denied, or has no answer when the time is over, is a
warning. AWS's policy ReadOnlyAccess answers every one of them. Roles of the stack file are assumed
first, as the AWS provider does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import cached_property
from itertools import product
from threading import Thread
from time import monotonic
from typing import Any

from catalog.instances import QUOTAS
from plans.parts import AccessPlan, Identity
from stacks.derive.capacity import CNI, SYSTEM, TYPES, quota_takers
from stacks.derive.credentials import NotAssumed, aws_session
from stacks.plan import EnvironmentPlan, TeamPlan
from stacks.reports.service_roles import role_findings, service_roles
from stacks.reports.zone_choice import eks_zone_errors, instead
from stacks.rules.access import account_findings, entry_findings, role_finding
from stacks.settings.environment import EnvironmentConfig, PoolConfig, ReservationConfig
from stacks.settings.problems import InputError, InputWarning

TIMEOUTS = {
    "connect_timeout": 2,
    "read_timeout": 3,
    "retries": {"total_max_attempts": 3, "mode": "standard"},
}
"""Seconds, and two retries: 18 seconds at most before a page of an answer is given up."""
DEADLINE = 60.0
"""Seconds after which what has no answer yet goes without: several pages, each slow, would take
minutes."""
COMING = ("scheduled", "pending", "payment-pending", "assessing", "delayed")
"""States of a reservation that may still become active (EC2 API, CapacityReservation)."""
Finding = InputError | InputWarning
Check = Callable[[], Iterable[Finding]]
Filters = dict[str, Sequence[str]]


class NotAnswered(Exception):
    """A call that was denied or failed: which, and why."""


def preflight(
    account: Account,
    plan: EnvironmentPlan | TeamPlan,
    wanted: EnvironmentConfig | None,
    deadline: float = DEADLINE,
) -> list[Finding]:
    """Everything the account has against the plan, and what it adds to it. `wanted`: None for a
    team."""
    until, callers = monotonic() + deadline, list[str]()

    def who() -> Iterator[Finding]:
        try:
            caller = account.caller_arn()
        except NotAssumed as refused:
            yield role_finding(plan.access, refused)
            return
        more = "; a team has nothing more to ask it" if wanted is None else ""
        yield InputWarning(path="account", text=f"answers {caller}{more}")
        if wrong := [*account_findings(plan.access, caller)]:
            yield from wrong
        else:
            callers.append(caller)

    told = _answers({"who asks": who}, until, deadline)
    # Who may not ask that much may ask nothing; and of a wrong account nothing more is asked.
    if callers and wanted and isinstance(plan, EnvironmentPlan):
        told += _answers(checks(account, plan, wanted, callers[0]), until, deadline)
    return list(dict.fromkeys(told))


def _answers(questions: Mapping[str, Check], until: float, deadline: float) -> list[Finding]:
    """What is found until then, and which questions are open. Their threads hold no exit back."""
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
                    text=f"did not say in {deadline:g} s: {name}, which is unchecked",
                )
            ]
        )
    ]


def _answer(check: Check, answer: Future[list[Finding]]) -> None:
    try:
        answer.set_result([*check()])
    except NotAnswered as reason:
        answer.set_result([InputWarning(path="account", text=f"could not ask {reason}")])
    except Exception as error:  # a error of ours, raised where the answer is read
        answer.set_exception(error)


def checks(
    account: Account, plan: EnvironmentPlan, wanted: EnvironmentConfig, caller: str
) -> dict[str, Check]:
    """What an environment asks, by name; each check asks when it is called, and judges the
    answer."""
    kinds = [kind for pool in plan.pools.values() for kind in pool.types]
    zone = plan.zone
    return {
        **{
            f"whether there is a cluster that admins.{name} created": lambda name=name, role=role: (
                creator_findings(name, role, account.has_cluster(plan.cluster.name))
            )
            for name, role in plan.cluster.admins
            if _role(role) == _role(caller)
        },
        **{
            f"whether {role} may enter the cluster": lambda role=role: entry_findings(
                plan.access.region,
                plan.cluster.name,
                role,
                not account.has_cluster(plan.cluster.name)
                or account.has_entry(plan.cluster.name, role),
            )
            for role in filter(None, [plan.access.role_arn])
        },
        "its zones": lambda: zone_findings(plan, wanted.zone_id, account.zones()),
        "what it may buy": lambda: offer_findings(
            plan, account.offers(sorted({kind.instance_type for kind in kinds}))
        ),
        **{
            f"quota {code}": lambda code=code, takers=takers: quota_findings(
                plan, code, takers, *account.quota(plan.identity, plan.system_nodes.name, code)
            )
            for code, takers in quota_takers(plan.capacity, plan.system_nodes).items()
        },
        **{
            f"reservation {held.id}": lambda name=name, pool=pool, held=held: reservation_findings(
                f"environment.pools.{name}", pool, held, zone, account.reservation(held.id)
            )
            for name, pool in wanted.pools.items()
            if (held := pool.reservation)
        },
        **{
            f"role {role.name}": lambda role=role: role_findings(
                plan, role, account.has_role(role.name)
            )
            for role in service_roles(plan)
        },
        "free addresses": lambda: address_findings(
            plan,
            *account.addresses(
                plan.identity, f"network-private-{zone[-1]}", [kind.name for kind in kinds]
            ),
        ),
    }


def _role(arn: str) -> tuple[str, str] | str:
    """Account and name of a role, or of the role of a session, which does not tell the path; else
    the ARN."""
    found = re.search(r":(\d+):(?:role/(?:.+/)?|assumed-role/)([^/]+)(?:/[^/]+)?$", arn)
    return (found[1], found[2]) if found else arn


def creator_findings(name: str, role: str, cluster_exists: bool) -> Iterator[InputError]:
    """Whoever creates a cluster is its admin, and EKS answers 409 to a second access entry of a
    role."""
    if not cluster_exists:
        yield InputError(
            path=f"environment.cluster.admins.{name}",
            got=role,
            fix="drop it",
            must="be another role than yours, which will create the cluster and so be its admin",
        )


def zone_findings(
    plan: EnvironmentPlan, zone_id: str | None, zones: Mapping[str, str]
) -> Iterator[Finding]:
    """Letters of zones differ from account to account: in which there are, and in which zone they
    mean."""
    for missing in [zone.name for zone in plan.network.zones if zone.name not in zones]:
        yield InputError(
            path="environment.zone",
            must="be available to this account, and so are the network's others",
            got=missing,
            fix=f"it has {', '.join(sorted(zones))}; {instead(plan, zones)}",
        )
    yield from eks_zone_errors(plan, zones)
    mine = zones.get(plan.zone)
    if mine and zone_id is None:
        yield InputWarning(
            path="environment.zone_id", text=f"put this line into the stack file: zone_id: {mine}"
        )
    elif mine and zone_id != mine:
        yield InputError(
            path="environment.zone_id",
            must=f"be what {plan.zone} is in this account",
            got=str(zone_id),
            fix=f"zone_id: {mine}",
        )


def offer_findings(
    plan: EnvironmentPlan, offers: Mapping[str, Iterable[str]]
) -> Iterator[InputError]:
    """Types that a pool's zones do not have."""
    for name, pool in plan.pools.items():
        for kind, zone in product([kind.instance_type for kind in pool.types], pool.zones):
            sold = sorted(offers.get(kind, ()))
            if zone not in sold:
                setting = "instance_types" if zone == plan.zone else "fallback_zones"
                yield InputError(
                    path=f"environment.pools.{name}.{setting}",
                    must=f"be sold to this account in {zone}",
                    got=kind,
                    fix=f"{plan.identity.region} has it in {', '.join(sold) or 'no zone'}",
                )


def quota_findings(
    plan: EnvironmentPlan, code: str, takers: Mapping[str, int], quota: float, others: int
) -> Iterator[InputError]:
    """A quota that full pools exceed; Karpenter would report it as lack of capacity, EKS of system
    nodes likewise."""
    vcpus = sum(takers.values())
    if vcpus + others > quota:
        pools = [*takers] != [SYSTEM]
        yield InputError(
            path="environment.pools" if pools else "environment.system_nodes",
            must=f"fit quota {code}, {quota:g} vCPUs{', when full' * pools}",
            got=f"{vcpus} for {', '.join(takers)}"
            + f" beside {others} that run already" * bool(others),
            fix="lower max_nodes, or " * pools + "aws service-quotas request-service-quota-increase"
            f" --service-code ec2 --quota-code {code} --desired-value {vcpus + others}"
            f" --region {plan.identity.region}",
        )


def reservation_findings(
    path: str, pool: PoolConfig, held: ReservationConfig, zone: str, found: Mapping[str, Any]
) -> Iterator[Finding]:
    """What a reservation is other than the stack file says. `found`: as EC2 describes it, or
    nothing."""
    at, state = f"{path}.reservation", found.get("State", "unknown to this account")
    if state not in ("active", *COMING):
        yield InputError(
            path=f"{at}.id",
            must="be active or will be",
            got=f"{held.id}, {state}",
            fix="take the pool out, or give the id of another",
        )
        return
    starts, total = found.get("StartDate"), found["TotalInstanceCount"]
    yield InputWarning(
        path=at,
        text=(
            f"{found['AvailableInstanceCount']} of {total} instances are free"
            if state == "active"
            else f"is {state}; its jobs wait until {starts or 'it is active'}"
        ),
    )
    for setting, said, true in (
        (f"{path}.instance_types", pool.instance_types[0], found["InstanceType"]),
        ("environment.zone", zone, found["AvailabilityZone"]),
        (
            f"{path}.capacity",
            pool.capacity,
            "block" if found.get("ReservationType") == "capacity-block" else "reservation",
        ),
        (f"{at}.starts", held.starts, starts if held.starts else None),
        (f"{at}.ends", held.ends, found.get("EndDate")),
        (
            f"{at}.placement_group",
            held.placement_group,
            found.get("PlacementGroupArn", "").rpartition("/")[2] or None,
        ),
        (f"{path}.max_nodes", max(pool.max_nodes, total), total),
    ):
        if said != true:
            yield InputError(
                path=setting,
                must=f"be that of {held.id}",
                got=str(said),
                fix=str(true or "drop it"),
            )


def address_findings(plan: EnvironmentPlan, free: int | None, nodes: int) -> Iterator[InputError]:
    """A subnet that is there already and lacks room for full pools, `nodes` of which stand."""
    needed = sum(use.addresses for use in plan.capacity.values()) - nodes * (1 + sum(CNI.values()))
    if free is not None and needed > free:
        yield InputError(
            path="environment.pools",
            must=f"fit the {free} free addresses of the zone's subnet when full",
            got=str(needed),
            fix="lower max_nodes, or take out what else has addresses there",
        )


class Account:
    """The account that the AWS provider would work in: that of the AWS CLI (AWS_PROFILE,
    AWS_ENDPOINT_URL), but for the profile and the roles of the stack file. A method is a
    question."""

    def __init__(self, access: AccessPlan) -> None:
        self._access = access

    def caller_arn(self) -> str:
        """Who asks; NotAssumed where AWS refuses a role of the stack file."""
        return self._ask("sts:GetCallerIdentity")["Arn"]

    def has_cluster(self, name: str) -> bool:
        return bool(self._ask("eks:DescribeCluster", unless="ResourceNotFound", name=name))

    def has_role(self, name: str) -> bool:
        return bool(self._ask("iam:GetRole", unless="NoSuchEntity", RoleName=name))

    def has_entry(self, cluster: str, role: str) -> bool:
        """Whether the role may enter the cluster."""
        return bool(
            self._ask(
                "eks:DescribeAccessEntry",
                unless="ResourceNotFound",
                clusterName=cluster,
                principalArn=role,
            )
        )

    def zones(self) -> dict[str, str]:
        """Name → id of the zones that are available."""
        found = self._ask("ec2:DescribeAvailabilityZones")["AvailabilityZones"]
        return {zone["ZoneName"]: zone["ZoneId"] for zone in found if zone["State"] == "available"}

    def offers(self, types: Sequence[str]) -> dict[str, list[str]]:
        """Instance type → names of the zones that have it."""
        found = self._ask(
            "ec2:DescribeInstanceTypeOfferings",
            LocationType="availability-zone",
            filters={"instance-type": types},
        )["InstanceTypeOfferings"]
        return {
            kind: [one["Location"] for one in found if one["InstanceType"] == kind]
            for kind in types
        }

    def quota(self, me: Identity, node_group: str, code: str) -> tuple[float, int]:
        """vCPUs, and how many of them others than this stack take with On-Demand instances of the
        catalogue's types."""
        quota = self._ask("servicequotas:GetServiceQuota", ServiceCode="ec2", QuotaCode=code)[
            "Quota"
        ]["Value"]
        if code not in QUOTAS.values():
            return quota, 0
        types: Filters = {
            "instance-type": [kind.name for kind in TYPES.values() if QUOTAS[kind.quota] == code]
        }
        group: Filters = {"tag:eks:nodegroup-name": [node_group]}
        return quota, self._vcpus(types) - self._vcpus(types | _tags(me)) - self._vcpus(
            types | group
        )

    def reservation(self, id_: str) -> dict[str, Any]:
        """As EC2 describes it; empty where it knows none."""
        found = self._ask(
            "ec2:DescribeCapacityReservations",
            unless="InvalidCapacityReservationId",
            CapacityReservationIds=[id_],
        )
        return next(iter(found.get("CapacityReservations", ())), {})

    def addresses(
        self, me: Identity, subnet: str, node_pools: Sequence[str]
    ) -> tuple[int | None, int]:
        """Free ones of the stack's subnet, None where there is none yet; and how many nodes of the
        NodePools run."""
        found = self._ask("ec2:DescribeSubnets", filters=_tags(me, subnet))["Subnets"]
        nodes = self._running(_tags(me, *(f"{name}-node" for name in node_pools)))
        return (found[0]["AvailableIpAddressCount"] if found else None), len(nodes)

    def _vcpus(self, filters: Filters) -> int:
        return sum(
            TYPES[one["InstanceType"]].vcpus
            for one in self._running(filters)
            if "InstanceLifecycle" not in one
        )

    def _running(self, filters: Filters) -> list[dict[str, Any]]:
        found = self._ask(
            "ec2:DescribeInstances",
            filters=filters | {"instance-state-name": ["pending", "running"]},
        )
        return [one for launched in found["Reservations"] for one in launched["Instances"]]

    def _ask(
        self, action: str, *, filters: Filters | None = None, unless: str = "-", **asked: Any
    ) -> dict[str, Any]:
        """All pages of the answer; empty where the refusal's code begins with `unless`."""
        from botocore import exceptions, xform_name

        service, _, operation = action.partition(":")
        if filters:
            asked["Filters"] = [
                {"Name": name, "Values": [*values]} for name, values in filters.items()
            ]
        try:
            client, method = self._clients[service], xform_name(operation)
            if client.can_paginate(method):
                return client.get_paginator(method).paginate(**asked).build_full_result()
            return getattr(client, method)(**asked)
        except (exceptions.BotoCoreError, exceptions.ClientError) as error:
            why = (
                error.response["Error"]["Code"]
                if isinstance(error, exceptions.ClientError)
                else str(error)
            )
            if why.startswith(unless):
                return {}
            raise NotAnswered(f"{action}: {why}") from error

    @cached_property
    def _clients(self) -> dict[str, Any]:
        """By IAM prefix; made by the first question, before there are threads: botocore is slow to
        load."""
        from botocore import config

        settings = config.Config(**TIMEOUTS)
        make = aws_session(self._access, settings).create_client
        return {
            name.replace("-", ""): make(name, self._access.region, config=settings)
            for name in ("sts", "ec2", "eks", "iam", "service-quotas")
        }


def _tags(me: Identity, *names: str) -> Filters:
    """Filters for what the stack has made, by its logical name."""
    named = {"tag:trainyard:name": names} if names else {}
    return {"tag:trainyard:project": [me.project], "tag:trainyard:stack": [me.stack], **named}
