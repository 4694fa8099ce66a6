"""Errors about an environment as a whole, before anything is created.

Cluster and Trainer: cluster.py. Network: network.py. Pools: pools.py. Jobs: jobs.py. Stores and
checkpoints: stores.py. Sources: AWS service limits named beside the rules. Examples of each rule:
tests/support/cases/environment.py.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from datetime import date, datetime

from trainyard.catalog import versions
from trainyard.catalog.aws.age import outdated
from trainyard.catalog.aws.zones import SNAPSHOT
from trainyard.derive.pools import TYPES, gpus_of
from trainyard.derive.teams import Share
from trainyard.parts.parts import PARTS, wanted_parts
from trainyard.plans.directories import NAMESPACE as DIRECTORIES
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.rules.blocks import hours_errors, hours_warnings
from trainyard.rules.cluster import (
    cluster_errors,
    support_warnings,
    trainer_errors,
    training_operator_errors,
)
from trainyard.rules.disks import disk_warnings
from trainyard.rules.endpoint import endpoint_warnings
from trainyard.rules.isolated import isolation_errors, isolation_warnings
from trainyard.rules.network import network_errors, network_warnings, zone_errors
from trainyard.rules.pools import pool_errors, pool_warnings
from trainyard.rules.prices import price_errors, price_warnings
from trainyard.rules.principals import sso_errors
from trainyard.rules.stores import store_errors, store_warnings, stores_together_errors
from trainyard.rules.system_nodes import system_node_errors, system_node_warnings
from trainyard.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.stores.kind import Surroundings

SYSTEM_NAMESPACES = (
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
    "kubeflow-system",
    "kueue-system",
    *(part.namespace for part in PARTS if part.namespace),
    DIRECTORIES,
)
"""They exist before us, or a chart makes them."""
RESERVED_TAG_KEYS = re.compile(
    r"aws:|trainyard:|karpenter\.(sh|k8s\.aws)/|eks:|kubernetes\.io/cluster|Name$", re.IGNORECASE
)
"""Keys that AWS, Karpenter (its EC2NodeClass refuses them) or this program sets."""
TAG_SIGNS = "_.:/=+-@"
"""Signs that a tag may have beside letters, digits and spaces."""
TAGS = 40
"""AWS takes 50 a resource; the rest are ours and Karpenter's."""


def environment_errors(
    region: str,
    wanted: EnvironmentConfig,
    zones: tuple[str, ...],
    now: datetime,
) -> Iterator[InputError]:
    """Every error of an environment, but for its jobs. `zones`: its network's."""
    at = "environment"
    yield from zone_errors(region, wanted)
    yield from network_errors(region, wanted)
    yield from isolation_errors(region, wanted)
    yield from cluster_errors(wanted)
    yield from sso_errors(wanted)
    yield from system_node_errors(wanted)
    yield from tag_errors("environment.tags", wanted.tags)
    if wanted.namespace in SYSTEM_NAMESPACES or wanted.namespace.startswith("kube-"):
        yield At(f"{at}.namespace").must(
            "not be a namespace of the system: kube-… or that of a chart",
            got=wanted.namespace,
            write="training",
        )
    yield from pool_errors(region, wanted, zones, now)
    yield from hours_errors(f"{at}.jobs", wanted.jobs, wanted.pools, now)
    yield from errors_of_stores(region, wanted)
    yield from stores_together_errors(wanted, zones)
    yield from trainer_errors(wanted)
    yield from training_operator_errors(wanted)
    yield from _owned_priorities(wanted)
    yield from price_errors(wanted)
    for part, settings in wanted_parts(wanted):
        yield from part.errors(settings, region, wanted)


def _owned_priorities(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Names that Kubernetes keeps for its own PriorityClasses (scheduling/validation, system-)."""
    for name in wanted.priorities:
        if name.startswith("system-"):
            yield At(f"environment.priorities.{name}").must(
                "not begin with system-, which Kubernetes keeps for itself",
                got=name,
                fix=f"rename it, such as {name.removeprefix('system-')}",
            )


def _nothing_to_replace(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Entries of stores that the stack file does not have. Where such a store is deployed, it goes."""
    for entry in wanted.allow_replace:
        kind, _, name = entry.partition(".")
        if kind == "storage" and name not in wanted.storage:
            yield At("environment.allow_replace").warning(
                f"{entry} is not in the stack file: that is right where the store {name} is deployed and"
                " goes, and allows nothing elsewhere"
            )


def surroundings(region: str, wanted: EnvironmentConfig) -> Surroundings:
    """Facts of an environment by which its stores are judged."""
    return Surroundings(
        region=region,
        pools=wanted.pools,
        instance_types=first_types(wanted),
        key=wanted.kms_key_arn,
    )


def errors_of_stores(region: str, wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Every error of one store by itself."""
    around = surroundings(region, wanted)
    for name, store in wanted.storage.items():
        yield from store_errors(f"environment.storage.{name}", store, around)


def team_errors(
    region: str, team: TeamConfig, base: StackConfig, now: datetime
) -> Iterator[InputError]:
    """Every error of a team on a sound environment, but for its jobs."""
    environment = base.environment
    assert environment is not None  # plan_team has looked
    yield from hours_errors("team.jobs", team.jobs, environment.pools, now)
    if region != base.region:
        yield At("aws:region").must("be the environment's region", got=region, write=base.region)
    namespace = team.namespace or ""
    own = f"team-{namespace.removeprefix('kube-')}"
    taken = (environment.namespace, *SYSTEM_NAMESPACES)
    if namespace in taken or namespace.startswith("kube-"):
        yield At("team.namespace").must(
            "be neither the environment's namespace nor one of the system", got=namespace, write=own
        )


def share_errors(
    share: Share, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Jobs larger than the team's share of the GPUs."""
    for name, job in jobs.items():
        if share.max_gpus and (need := gpus_of(job, environment)) > share.max_gpus:
            nodes = share.max_gpus // (need // job.nodes)
            yield At(f"team.jobs.{name}.nodes").must(
                f"need at most the {share.max_gpus} GPUs of {share.limit}",
                got=f"{job.nodes}, which need {need} GPUs",
                fix=f"raise {share.limit} to {need}" + (f", or write {nodes}" if nodes else ""),
            )


def environment_warnings(
    region: str, wanted: EnvironmentConfig, now: datetime
) -> Iterator[InputWarning]:
    """Warnings about an environment that works, without those about jobs."""
    yield from endpoint_warnings(wanted.cluster, wanted.network)
    yield from isolation_warnings(wanted)
    yield from network_warnings(region, wanted)
    if wanted.zone_id is None:
        yield At("environment.zone_id").warning(
            "it is not set, so instance types are checked against the region and not against the"
            " zone; trainyard check --live prints the zone's id"
        )
    yield from _nothing_to_replace(wanted)
    yield from offers_warnings(now.date())
    kubernetes, trainer = wanted.cluster.version, wanted.trainer.version
    if (
        kubernetes in versions.KUBERNETES
        and trainer in versions.TRAINERS
        and not versions.known_good(kubernetes, trainer)
    ):
        tried = ", ".join(
            f"{known.trainer} with {' and '.join(known.karpenter[versions.KARPENTER])}"
            for known in versions.KNOWN_GOOD
        )
        yield At("environment.trainer.version").warning(
            f"Trainer {trainer} was never tested with Kubernetes {kubernetes}; tested: {tried}"
        )
    yield from _karpenter_warnings(kubernetes, trainer, wanted.karpenter.version)
    yield from support_warnings(wanted, now.date())
    yield from system_node_warnings(region, wanted)
    yield from pool_warnings(wanted, now)
    yield from disk_warnings(region, wanted)
    yield from hours_warnings("environment.jobs", wanted.jobs, wanted.pools, now)
    for part, settings in wanted_parts(wanted):
        yield from part.warnings(settings, region, wanted)
    yield from store_warnings(wanted, surroundings(region, wanted))
    yield from price_warnings(wanted)


def _karpenter_warnings(kubernetes: str, trainer: str, karpenter: str) -> Iterator[InputWarning]:
    """A Karpenter that was never tested with a Kubernetes and a Trainer that were tested together."""
    tried = [one for one in versions.KARPENTERS if versions.known_good(kubernetes, trainer, one)]
    if karpenter in versions.KARPENTERS and tried and karpenter not in tried:
        yield At("environment.karpenter.version").warning(
            f"Karpenter {karpenter} was never tested with Kubernetes {kubernetes} and Trainer {trainer};"
            f" tested with both: Karpenter {' and '.join(tried)}"
        )


def offers_warnings(today: date) -> Iterator[InputWarning]:
    """The age of the table that says which instance types AWS sells where."""
    if late := outdated(SNAPSHOT, today):
        yield At("environment.zone").warning(f"the table of instance offerings {late}")


def first_types(wanted: EnvironmentConfig) -> list[str]:
    """The first known type of each pool, those with the most GPUs before the others."""
    found = [
        pool.instance_types[0]
        for pool in wanted.pools.values()
        if pool.instance_types and pool.instance_types[0] in TYPES
    ]
    return sorted(found, key=lambda kind: -TYPES[kind].gpus)


def tag_errors(path: str, tags: Mapping[str, str]) -> Iterator[InputError]:
    """Tags that AWS or Karpenter would refuse, or that this program sets. `path`: of the setting."""
    for key, value in tags.items():
        if RESERVED_TAG_KEYS.match(key):
            yield At(f"{path}.{key}").must(
                "not have a key that AWS, Karpenter or this program sets",
                got=key,
                fix="delete it, or use a key of your own, such as team or cost-center",
                write=REMOVE,
            )
        yield from _tag_characters(f"{path}.{key}", key, value)
        if not 1 <= len(key) <= 128 or len(value) > 256:
            yield At(f"{path}.{key[:20]}").must(
                "have a key of 1 to 128 characters and a value of at most 256",
                got=f"{len(key)} and {len(value)} characters",
                fix="shorten it",
            )
    seen: dict[str, str] = {}
    for key in tags:
        if (first := seen.setdefault(key.lower(), key)) != key:
            yield At(f"{path}.{key}").must(
                "not differ from another key by case only: IAM takes both for one",
                got=f"{first} and {key}",
                write=REMOVE,
            )
    if len(tags) > TAGS:
        yield At(path).must(
            f"have at most {TAGS} tags: AWS takes 50, and this program adds its own",
            got=len(tags),
            fix=f"delete {len(tags) - TAGS} of them",
        )


def _tag_characters(path: str, key: str, value: str) -> Iterator[InputError]:
    """IAM, FSx, EFS, SSM, CloudWatch Logs and Managed Prometheus take these characters only (TagKey and
    TagValue in the models of botocore); EC2 takes any, so the first refusal comes late in an update."""
    for what, text in (("key", key), ("value", value)):
        if (allowed := _allowed(text)) != text:
            renamed = f"name it {as_yaml(allowed)}" if allowed else "rename it"
            written = (
                f"write {as_yaml(allowed)}" if allowed else "write another value, or delete it"
            )
            yield At(path).must(
                f"have a {what} of letters, digits, spaces and {TAG_SIGNS}: IAM, FSx and EFS"
                " take nothing else",
                got=text,
                fix=written if what == "value" else f"delete it, or {renamed}",
                write=(allowed or None) if what == "value" else REMOVE,
            )


def _allowed(text: str) -> str:
    """A tag without the characters that AWS refuses: a hyphen inside a word, nothing elsewhere."""
    kept = (c if c in TAG_SIGNS or unicodedata.category(c)[0] in "LZN" else "\0" for c in text)
    return re.sub(r"\0+", "", re.sub(r"(?<=[^\s\0])\0+(?=[^\s\0])", "-", "".join(kept)))
