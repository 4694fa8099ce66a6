"""From what is wanted to what will be built: every derived fact, decided once, without the engine.

`plan_stack` returns the plan (trainyard/plan.py), or every error (trainyard/rules/), and every warning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from trainyard.derive.access import access_plan
from trainyard.derive.cluster import (
    add_ons_plan,
    cluster_name,
    cluster_plan,
    gpu_nodes_plan,
    system_nodes_plan,
)
from trainyard.derive.contract import contract, explained
from trainyard.derive.controllers import (
    device_plugins_plan,
    karpenter_plan,
    trainer_plan,
    training_operator_plans,
)
from trainyard.derive.job_site import job_site
from trainyard.derive.jobs import runtime_plans
from trainyard.derive.mirror import mirrored
from trainyard.derive.namespace import directory_roots_plan, job_namespace_plan
from trainyard.derive.network import network_plan, network_zones
from trainyard.derive.pools import pool_plans, pool_uses, team_at_once
from trainyard.derive.queues import possible_nodes, queued, queues_plan
from trainyard.derive.secrets import job_pods_plan
from trainyard.derive.stores import job_verdicts, registry_plans
from trainyard.derive.subnets import network_use
from trainyard.derive.sweep import paths_of_runs, unfolded
from trainyard.derive.teams import Share, share_of, team_entry_plans
from trainyard.manifests.stack_jobs import StackJobs, read_jobs
from trainyard.objects.teams.teams import parameter_name
from trainyard.parts.parts import job_notes, part_plans
from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.plans.access import AccessPlan
from trainyard.plans.identity import Identity
from trainyard.rules.access import access_warnings, environment_access_errors, team_access_errors
from trainyard.rules.blocks import hours_warnings
from trainyard.rules.contracts import Base, Promise, base_of_contract, sized_stores
from trainyard.rules.encryption import encryption_errors
from trainyard.rules.entries import judged
from trainyard.rules.environment import (
    environment_errors,
    environment_warnings,
    share_errors,
    team_errors,
)
from trainyard.rules.isolated import offline_warnings
from trainyard.rules.loads import team_load_errors
from trainyard.rules.network import stack_errors
from trainyard.rules.principals import entrants
from trainyard.rules.secrets import account_errors, entry_secret_errors, team_secret_errors
from trainyard.rules.teams import (
    contract_errors,
    entry_errors,
    entry_warnings,
    listed_job_errors,
    listed_plan_errors,
    of_the_team,
)
from trainyard.rules.texts import text_errors
from trainyard.rules.together import (
    beside,
    docker_hub_warnings,
    ecr_public_warnings,
    gang_warnings,
    saved,
    shared_directory_errors,
    team_errors_together,
    team_warnings_together,
)
from trainyard.rules.workers import worker_errors, worker_warnings
from trainyard.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from trainyard.settings.job import typed
from trainyard.settings.reading.contracts import (
    core,
    read_contract,
    read_contract_file,
    signature,
    within_setting,
)
from trainyard.settings.reading.reader import Reading, any_environment
from trainyard.settings.reading.teams import environment_of, other_teams, unsound
from trainyard.stores.efs import mount_zones
from trainyard.stores.kinds import store_plans
from trainyard.stores.lustre_sharing import export_errors


def plan_stack(
    reading: Reading,
    folder: Path = Path("."),
    now: datetime | None = None,
    contract: Mapping[str, Any] | None = None,
) -> Planned:
    """Plan whatever the stack file describes. `folder` holds the stack files a team refers to;
    `now` decides which reservations are over and how AWS supports the Kubernetes version. `contract`: of a
    team's environment, where no file has it."""
    now = now or datetime.now(UTC)
    sound = not reading.errors
    if any(config.team for config in reading.configs):
        planned = _plan_team(reading, folder, now, contract)
    else:
        planned = [
            _plan_environment(config, folder, now, build=sound) for config in reading.configs
        ]
    return _agreed(reading, planned).located(reading.lines)


def plan_by_contract(
    reading: Reading, contract: Mapping[str, Any], folder: Path, now: datetime | None = None
) -> Planned:
    """Plan a team that is sound by another contract than its own, such as the one that is deployed. `folder`
    holds the files of its jobs."""
    config = reading.config
    assert config and config.team
    given = {**contract, "digest": signature(contract)}
    found = read_contract(given, config.team.environment, config.team.name)
    base = base_of_contract(found, config.region)
    return _on_base(config, config.team, base, folder, now or datetime.now(UTC), build=True)


def _agreed(reading: Reading, planned: Sequence[Planned]) -> Planned:
    """One plan, or what every variant of it has against the stack file."""
    if not planned:
        return Planned(plan=None, errors=reading.errors)
    first, last = planned[0], planned[-1]
    stand_ins = replace(reading.stand_ins, runs=paths_of_runs(reading.configs))
    warnings = stand_ins.agreed(first.warnings, last.warnings)
    return Planned(
        plan=first.plan,
        errors=(*reading.errors, *stand_ins.agreed(first.errors, last.errors)),
        warnings=(*warnings, *stand_ins.not_checked()),
    )


def _plan_environment(config: StackConfig, folder: Path, now: datetime, *, build: bool) -> Planned:
    """Plan an environment; a plan is only made where nothing is refused, and `build` is true.
    `folder` holds the files of its jobs."""
    wanted = config.environment and unfolded(config.environment)
    if wanted is None:
        return Planned(plan=None, errors=())
    zones = network_zones(config.region, wanted)
    access = access_plan(config.region, config.aws, wanted.cluster)
    jobs = read_jobs("environment.jobs", wanted.jobs, wanted, wanted.namespace, folder)
    entries = judged("environment.jobs", typed(wanted.jobs), wanted, config.region)
    errors = (
        *stack_errors(config.stack),
        *environment_access_errors(access, config.aws, wanted.cluster, wanted.tags),
        *environment_errors(config.region, wanted, zones, now),
        *encryption_errors(config.region, wanted, access),
        *export_errors(config.stack, wanted, folder),
        *entry_errors(wanted, access, identity(config, wanted)),
        *worker_errors(config.stack, wanted, folder),
        *entry_secret_errors(wanted, config.region),
        *account_errors(wanted, access),
        *text_errors("environment", wanted, config.region),
        *entries.errors,
        *shared_directory_errors(saved("environment.jobs", typed(wanted.jobs))),
        *jobs.errors,
    )
    warnings = (
        *access_warnings(access),
        *environment_warnings(config.region, wanted, now),
        *entry_warnings(wanted, access),
        *worker_warnings(wanted, folder),
        *entries.warnings,
        *gang_warnings("environment.jobs", jobs.at_once(), wanted),
        *docker_hub_warnings("environment.jobs", jobs.at_once(), wanted),
        *ecr_public_warnings("environment.jobs", jobs.at_once(), wanted),
        *offline_warnings("environment.jobs", jobs.described(), wanted),
        *jobs.warnings,
    )
    if errors or not build:
        return Planned(plan=None, errors=errors, warnings=warnings)
    plan = _environment(
        config, sized_stores(config.region, wanted), access, zones, jobs, now.date()
    )
    errors = tuple(contract_errors(plan.teams))
    return Planned(plan=None if errors else plan, errors=errors, warnings=warnings)


def _plan_team(
    reading: Reading, folder: Path, now: datetime, contract: Mapping[str, Any] | None
) -> list[Planned]:
    """Plan a team from its stack file and its environment's, without a cluster, once for each
    stand-in of a wrong value in either file. `contract`: as of plan_stack."""
    planned, sound = [], not reading.errors
    for number in range(2):
        config = reading.configs[min(number, len(reading.configs) - 1)]
        if config.team is None:
            planned.append(Planned(plan=None, errors=()))
        else:
            base = _base(config, config.team, folder, now, number, contract)
            planned.append(_on_base(config, config.team, base, folder, now, build=sound))
            if base.promise and sound:
                break  # neither file has stand-ins
    return planned


def _on_base(
    config: StackConfig, team: TeamConfig, base: Base, folder: Path, now: datetime, *, build: bool
) -> Planned:
    """Plan a team on its environment; a plan is only made where nothing is refused, and `build` is true."""
    environment, team = base.environment, unfolded(team)
    share = share_of(team, environment, config.stack)
    jobs = read_jobs("team.jobs", team.jobs, environment, share.namespace, folder)
    entries = judged("team.jobs", typed(team.jobs), environment, config.region)
    others = other_teams(config.stack, team.environment, folder)
    together = beside(team.environment, environment) | jobs.at_once()
    deployer = share.entry.deployer if share.entry else None
    access = access_plan(config.region, config.aws, environment.cluster, deployer)
    errors = (
        *base.errors,
        *team_access_errors(access, config.aws, deployer),
        *team_errors(config.region, team, base.config, now),
        *team_errors_together(team, environment, others),
        *entries.errors,
        *share_errors(share, jobs.described(), environment),
        *listed_job_errors(share, team.jobs, jobs.described(), environment),
        *team_secret_errors(share, team),
        *team_load_errors(typed(team.jobs)),
        *text_errors("team", team, config.region),
        *jobs.errors,
    )
    warnings = (
        *access_warnings(access),
        *entries.warnings,
        *team_warnings_together(share, jobs.at_once(), together, environment, typed(team.jobs)),
        *offline_warnings("team.jobs", jobs.described(), environment),
        *hours_warnings("team.jobs", team.jobs, environment.pools, now),
        *jobs.warnings,
    )
    if errors or not build or base.promise is None:
        return Planned(plan=None, errors=of_the_team(errors, team.environment), warnings=warnings)
    plan = _team(config, team, base.environment, base.promise, access, jobs, share)
    errors = tuple(listed_plan_errors(share, plan.jobs, jobs.described(), environment, folder))
    return Planned(plan=None if errors else plan, errors=errors, warnings=warnings)


def _base(
    config: StackConfig,
    team: TeamConfig,
    folder: Path,
    now: datetime,
    number: int,
    contract: Mapping[str, Any] | None,
) -> Base:
    """The environment that a team refers to, from its contract or its stack file in `folder`. Where there is none,
    anything stands in for it. `number`: of the stand-in for what is wrong with it. `contract`: as of plan_stack."""
    if contract is not None:
        found = read_contract(contract, team.environment, team.name)
        return base_of_contract(within_setting(found), config.region, number)
    if team.contract is not None:
        return base_of_contract(read_contract_file(team, folder), config.region, number)
    reading, error = environment_of(team, folder)
    base = reading.config
    if base is None or base.environment is None:
        reading = any_environment(config.region)
    base = reading.configs[min(number, len(reading.configs) - 1)]
    environment = base.environment and unfolded(base.environment)
    assert environment is not None  # an environment without settings has stand-ins for each of them
    planned = _plan_environment(base, folder, now, build=not reading.errors)
    if isinstance(planned.plan, EnvironmentPlan) and error is None:
        listed = planned.plan.teams.get(team.name or "")
        own = listed.contract if listed else core(planned.plan.contract)
        promise = Promise(own, planned.plan.leads_out)
        return Base(base, sized_stores(base.region, environment), promise)
    return Base(base, environment, None, (error or unsound(team),))


def _environment(
    config: StackConfig,
    wanted: EnvironmentConfig,
    access: AccessPlan,
    zones: tuple[str, ...],
    jobs: StackJobs,
    day: date,
) -> EnvironmentPlan:
    """Every part of an environment, in the order of stacks/environment.py, with images as nodes pull them."""
    me = identity(config, wanted)
    cluster, use = cluster_name(me, wanted, zones), network_use(wanted, zones)
    pools = pool_plans(me, wanted, access)
    plugins = device_plugins_plan(pools, wanted.artifacts)
    runtimes, queues, described = runtime_plans(wanted), queues_plan(me, wanted), typed(wanted.jobs)
    verdicts = job_verdicts(described, wanted, config.region)
    site = job_site(wanted, runtimes, wanted.namespace, config.region)
    plan = EnvironmentPlan(
        identity=me,
        access=access,
        zone=wanted.zone,
        network=network_plan(me, wanted.network, wanted.cluster, use, cluster),
        stores=store_plans(me, wanted.storage, mount_zones(zones, wanted.zone, wanted.pools)),
        registries=registry_plans(me, wanted.registries),
        cluster=cluster_plan(me, cluster, wanted, access, day),
        add_ons=add_ons_plan(me, wanted),
        system_nodes=system_nodes_plan(me, wanted, access, len(zones)),
        gpu_nodes=gpu_nodes_plan(me, cluster, wanted),
        karpenter=karpenter_plan(me, cluster, wanted),
        pools=pools,
        device_plugins=plugins,
        trainer=trainer_plan(wanted.trainer.version, wanted.artifacts),
        runtimes=runtimes,
        training_operators=training_operator_plans(wanted.training_operator, wanted.artifacts),
        priorities=dict(sorted(wanted.priorities.items())),
        workspace=job_namespace_plan(
            wanted.namespace, wanted.storage, wanted.zone, wanted.kms_key_arn, wanted.jobs
        ),
        job_pods=job_pods_plan(me, wanted.namespace, wanted.jobs),
        directory_roots=directory_roots_plan(wanted),
        queues=queues,
        parts=part_plans(me, wanted, queues, plugins.efa_instance_types),
        teams=team_entry_plans(me, wanted),
        entrants=entrants(wanted),
        jobs=jobs.planned(site, job_notes(wanted, described, verdicts)),
        allow_replace=wanted.allow_replace,
        capacity=pool_uses(wanted, jobs.described()),
        checkpoints=verdicts,
        fits=jobs.fits,
        contract=explained(contract(config.stack, config.region, wanted), runtimes),
        prices=wanted.own_prices,
    )
    renamed, copies = mirrored(plan, config.region, wanted.artifacts)
    return replace(renamed, copies=copies) if copies else plan


def _team(
    config: StackConfig,
    team: TeamConfig,
    environment: EnvironmentConfig,
    promise: Promise,
    access: AccessPlan,
    jobs: StackJobs,
    share: Share,
) -> TeamPlan:
    """Every part of a team. Its namespace has the claims of the stores that its jobs mount."""
    described = typed(team.jobs)
    verdicts = job_verdicts(described, environment, config.region)
    site = job_site(environment, runtime_plans(environment), share.namespace, config.region)
    plans = queued(
        jobs.planned(site, job_notes(environment, described, verdicts)),
        team.jobs,
        share.queue,
        environment.trainer.version,
    )
    mounted = {store for job in plans.values() for store in job.stores}
    stores = {name: store for name, store in environment.storage.items() if name in mounted}
    plan = TeamPlan(
        identity=Identity(project=config.project, stack=config.stack, region=config.region),
        environment=team.environment,
        contract=promise.contract,
        parameter=parameter_name(team.environment, team.name)
        if share.entry and team.name
        else None,
        access=access,
        leads_out=promise.leads_out,
        workspace=job_namespace_plan(
            share.namespace,
            stores,
            environment.zone,
            environment.kms_key_arn,
            team.jobs,
            max_gpus=share.max_gpus,
            team=team.name,
        ),
        jobs=plans,
        capacity=pool_uses(environment, jobs.described()),
        at_once=team_at_once(
            environment,
            jobs.described(),
            share.max_gpus,
            possible_nodes(team.name or "", environment),
        ),
        checkpoints=verdicts,
        fits=jobs.fits,
        prices=environment.own_prices,
    )
    renamed, copies = mirrored(plan, config.region, environment.artifacts)
    return replace(renamed, copies=copies) if copies else plan


def identity(config: StackConfig, wanted: EnvironmentConfig) -> Identity:
    """Identity of an environment: its names and tags."""
    return Identity(
        project=config.project,
        stack=config.stack,
        region=config.region,
        extra_tags=tuple(sorted(wanted.tags.items())),
        permissions_boundary=wanted.permissions_boundary,
        kms_key_arn=wanted.kms_key_arn,
    )
