"""From a job's description to its object: what a TrainJob or PyTorchJob says, and its identity. Its
files: job_files.py.

A TrainJob and a PyTorchJob of one description are twins: the same pods under another controller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from trainyard.catalog import fabric
from trainyard.derive import commands, output, pod_resources
from trainyard.derive.commands import command_of, lasting
from trainyard.derive.gang_waits import waits
from trainyard.derive.job_site import JobSite
from trainyard.derive.loads import load_plans
from trainyard.derive.next_run import next_run
from trainyard.derive.pools import TYPES
from trainyard.objects.iam.secrets import secret_files
from trainyard.objects.jobs import rendezvous
from trainyard.objects.jobs.own_runtimes import Fetched, OwnRuntime, own_runtime
from trainyard.objects.jobs.pod_template import PULL_POLICIES, HostFolder, Mount, Training
from trainyard.objects.jobs.pytorch import PyTorchJobSettings, pytorch_job_spec
from trainyard.objects.jobs.rendezvous import with_whole_name
from trainyard.objects.jobs.trainer import pod_jobs, train_job_spec
from trainyard.objects.jobs.upstream_runtimes import TUNED, upstream_runtimes
from trainyard.objects.queues.queues import near
from trainyard.plans import push_gateway
from trainyard.plans.identity import digest
from trainyard.plans.jobs import ConfigMapPlan, JobPlan, RuntimePlan, Spec
from trainyard.settings.environment import EnvironmentConfig, OwnRuntimeConfig
from trainyard.settings.job import JobConfig, PyTorchJobConfig, TorchtuneConfig
from trainyard.settings.pools import PoolConfig
from trainyard.stores.kinds import claim_name

PLACE, CHECKPOINTS = "CHECKPOINT_DIR", "/checkpoints"
"""Where a job finds its checkpoint directory, whatever store it lies on."""
KEEP = "CHECKPOINT_KEEP"
"""Variable with the number of checkpoints that its script keeps."""
TENSORBOARD = "/tensorboard"
CLEAN_PODS: dict[str, Literal["None", "Running", "All"]] = {
    "none": "None",
    "running": "Running",
    "all": "All",
}
"""Setting → cleanPodPolicy."""


def job_plan(
    name: str,
    job: JobConfig,
    site: JobSite,
    files: ConfigMapPlan | None,
    notes: Mapping[str, str],
) -> JobPlan:
    """A job, decided. `files`: what it brings from this checkout. `notes`: annotations that tell what is
    planned of it."""
    own = site.own_runtimes.get(job.runtime or "")
    training = _training(name, job, site, own, files)
    rendered = _rendered(job, site, own, training)
    secrets, loads = training.secret_files, load_plans(job, site)
    asked = [*rendered.asked, *([each.what, each.place] for each in loads)]
    description = digest(asked)[:12]
    if own_place := _own_place(job, description):
        job = own_place
        training = _training(name, job, site, own, files)
        rendered = _rendered(job, site, own, training)
    return JobPlan(
        name=name,
        namespace=site.namespace,
        kind=rendered.kind,
        runtime=job.runtime,
        pool=job.pool,
        stores=rendered.stores,
        nodes=job.nodes,
        image=job.image,
        image_gb=job.image_gb,
        checkpoints=_saved(job) or training.env.get(PLACE),
        resumes_from=job.resumes_from,
        when_changed=job.checkpoints.when_changed if job.checkpoints else None,
        other_directory=after.afresh.directory if (after := next_run(job)) else None,
        labels=training.labels,
        annotations=notes,
        spec=rendered.spec,
        files=files,
        objects=(secrets.object(),) if secrets else (),
        **_managed(job),
        priorities=tuple(each for each in (job.priority, own and own.priority) if each),
        expected_hours=job.expected_hours,
        wait=job.wait,
        wait_minutes=job.wait_minutes,
        loads=loads,
        run=f"{description}-{job.run}",
    )


def _own_place(job: JobConfig, description: str) -> JobConfig | None:
    """The job with a directory for checkpoints that only this description of it has; None where the setting
    does not ask for one. The description is that of the job without it, so that the setting starts no run."""
    saved = job.checkpoints
    if saved is None or saved.when_changed != "afresh":
        return None
    directory = f"{job.in_run(saved.directory)}/{description}"
    return replace(job, checkpoints=replace(saved, directory=directory))


def _saved(job: JobConfig) -> str | None:
    """Where the job saves, as store/directory."""
    saved = job.checkpoints
    return f"{saved.store}/{job.in_run(saved.directory)}" if saved else None


def _managed(job: JobConfig) -> dict[str, Any]:
    """Secrets of the job, and their keys, that the pods' role must be allowed to read."""
    managed = job.managed_secrets.values()
    return {
        "secrets": tuple(sorted({each.secrets_manager for each in managed})),
        "secret_keys": tuple(sorted({each.kms_key_arn for each in managed if each.kms_key_arn})),
    }


def _training(
    name: str,
    job: JobConfig,
    site: JobSite,
    own: OwnRuntimeConfig | None,
    files: ConfigMapPlan | None,
) -> Training:
    """Pods of a job, whichever controller runs them. Secrets and folders are sorted, as the engine
    hands settings over: another order in the file is not another run."""
    pool = site.pools[job.pool]
    kind = TYPES[pool.instance_types[0]]
    mounts, places = _mounts(job, site.claims)
    command, kept = command_of(job), _kept(job)
    secrets = secret_files(name, job.managed_secrets, site.region)
    return Training(
        image=job.image,
        command=secrets.exporting(command) if secrets else command,
        arguments=job.arguments or (),
        nodes=job.nodes,
        **_node(job, pool, site.zone, has_workers=site.has_workers),
        env={
            **fabric.environment(kind, job.nodes),
            **site.env,
            **waits(job, own),
            **output.unbuffered(job, own),
            **job.env,
            **places,
            **kept,
        },
        secrets=job.kubernetes_secrets,
        secret_files=secrets,
        mounts=mounts,
        files=(files.name, job.files.path) if files and job.files else None,
        host_folders=tuple(
            HostFolder(name=folder, host=at.host, path=at.path)
            for folder, at in sorted(job.host_paths.items())
        ),
        local_scratch=job.local_scratch,
        pull_secrets=job.pull_secrets,
        labels=dict(sorted(job.labels.items())),
        time_limit_minutes=job.time_limit_minutes,
    )


def _node(job: JobConfig, pool: PoolConfig, zone: str, *, has_workers: bool) -> dict[str, Any]:
    """Node of each pod of a job, and its share of the node."""
    kinds = [TYPES[each] for each in pool.instance_types]
    return {
        "processes_per_node": pod_resources.processes(job, kinds),
        "resources": pod_resources.devices(job, kinds[0]),
        "cpus": pod_resources.cpus(job, kinds),
        "memory_gib": pod_resources.memory_gib(job, kinds),
        "node_selector": pod_resources.node_selector(job.pool, pool, zone, has_workers=has_workers),
        "shared_memory_gib": pod_resources.shared_memory_gib(job, kinds),
    }


def _kept(job: JobConfig) -> dict[str, str]:
    """The variable, where the job says how many."""
    keep = job.checkpoints.keep if job.checkpoints else None
    return {KEEP: str(keep)} if keep else {}


@dataclass(frozen=True, kw_only=True)
class _Rendered:
    """The object of a job, and what it was made from."""

    kind: str
    """TrainJob or PyTorchJob."""
    spec: Spec
    stores: tuple[str, ...]
    """Stores that its pods mount, those of its runtime among them."""
    asked: list[Any]
    """Everything that the job asks for, and not how this release of a controller spells it: an
    upgrade starts no run again."""


def _rendered(
    job: JobConfig, site: JobSite, own: OwnRuntimeConfig | None, training: Training
) -> _Rendered:
    """A PyTorchJob, or a TrainJob on its runtime."""
    asked, mounted = _asked(job, training), stores(job)
    if job.pytorch_job is not None:
        operator = _operator(job, job.pytorch_job)
        return _Rendered(
            kind="PyTorchJob",
            stores=mounted,
            asked=[asked, _said(asdict(operator))],
            spec=pytorch_job_spec(lasting(job, training), operator=operator),
        )
    runtime, recipe = site.runtimes[job.runtime or ""], _recipe(job, own)
    named = replace(training, command=with_whole_name(training.command, site.namespace))
    return _Rendered(
        kind="TrainJob",
        stores=tuple(sorted({*mounted, *runtime.stores})),
        asked=[asked, job.runtime, *recipe],
        spec=train_job_spec(site.trainer, runtime.name, named, jobs=pod_jobs(runtime.spec)),
    )


def _asked(job: JobConfig, training: Training) -> dict[str, Any]:
    """Input of the run's identity. vCPUs, memory and arguments count only where the stack file sets
    them, so a new default starts no new run. Nor does a variable of ours that came later, or a newer
    setting that the job does not use."""
    asked = asdict(training)
    settings = {
        "cpus": job.cpus_per_node,
        "memory_gib": job.memory_gib,
        "arguments": job.arguments,
        "secret_files": training.secret_files,
    }
    for name, said in settings.items():
        if said is None:
            del asked[name]
    if job.processes_per_node == "cpu":  # its number follows from the type
        asked["processes_per_node"] = "cpu"
    asked["command"] = [word for word in asked["command"] if word != commands.RUN_ID]
    ours = (push_gateway.VARIABLE, rendezvous.VARIABLE, rendezvous.OWN_STORE, output.VARIABLE)
    for later in ours:
        if later not in job.env:
            asked["env"].pop(later, None)
    return asked


def _said(operator: dict[str, Any]) -> dict[str, Any]:
    """Settings of the PyTorchJob for the run's identity, without newer ones that it does not use, and with
    one of 0.1.0: without it each run would be another."""
    later = ("pull_policy", "role_labels")
    said = {name: value for name, value in operator.items() if value or name not in later}
    return {"keep_finished_minutes": None, **said}


def runtime_plans(wanted: EnvironmentConfig) -> tuple[RuntimePlan, ...]:
    """The runtimes of an environment: upstream's, then its own."""
    version = wanted.trainer.version
    shipped = upstream_runtimes(version)
    found = {name: shipped[name] for name in wanted.trainer.runtimes}
    found |= {
        name: own_spec(version, own, wanted) for name, own in wanted.trainer.own_runtimes.items()
    }
    mounted = {
        name: (own.torchtune.store,)
        for name, own in wanted.trainer.own_runtimes.items()
        if own.torchtune
    }
    if wanted.queues and wanted.queues.topology:
        found = {name: (framework, near(spec)) for name, (framework, spec) in found.items()}
    return tuple(
        RuntimePlan(name=name, framework=framework, spec=spec, stores=mounted.get(name, ()))
        for name, (framework, spec) in found.items()
    )


def own_spec(
    version: str, own: OwnRuntimeConfig, environment: EnvironmentConfig
) -> tuple[str, Spec]:
    """(framework, spec) of a runtime of the stack file for a Trainer version."""
    fetched = _fetched(own.torchtune, environment) if own.torchtune else None
    kind = (
        "torch" if own.kind == "torchtune" and not fetched else own.kind
    )  # refused, and looked at all the same
    return own_runtime(
        version,
        OwnRuntime(
            kind=kind,
            image=own.image,
            max_restarts=own.max_restarts,
            fetched=fetched,
            command=own.command,
            env=own.env,
            pull_policy=PULL_POLICIES.get(own.image_pull_policy or ""),
            priority=own.priority,
            node=_whole_node(own, environment),
        ),
    )


def _whole_node(own: OwnRuntimeConfig, environment: EnvironmentConfig) -> Training | None:
    """A pod that takes a whole node of the runtime's pool; None where the runtime names no pool that can be
    had, which is refused. Any number of nodes may meet, so the pod has the node's EFA devices."""
    pool = environment.pools.get(own.pool or "")
    types = pool.instance_types if pool else ()
    if own.pool is None or pool is None or not types or not {*types} <= TYPES.keys():
        return None
    job = JobConfig(pool=own.pool, image=own.image, nodes=2)
    return Training(
        image=own.image,
        command=(),
        nodes=job.nodes,
        **_node(job, pool, environment.zone, has_workers=environment.has_workers),
        env=fabric.environment(TYPES[types[0]], job.nodes),
    )


def _fetched(wanted: TorchtuneConfig, environment: EnvironmentConfig) -> Fetched | None:
    if wanted.model not in TUNED:
        return None
    store = environment.storage.get(wanted.store)
    return Fetched(
        model=wanted.model,
        store=wanted.store,
        directory=wanted.directory,
        claim=claim_name(wanted.store, store, environment.zone, environment.kms_key_arn)
        if store
        else wanted.store,
        token=wanted.token,
    )


def stores(job: JobConfig) -> tuple[str, ...]:
    """The stores a job mounts."""
    directories = [each.store for each in (job.checkpoints, job.tensorboard) if each]
    return tuple(sorted({*job.storage, *directories}))


def _mounts(job: JobConfig, claims: Mapping[str, str]) -> tuple[tuple[Mount, ...], dict[str, str]]:
    """Mounts of the job, and the variables that name their places. `claims`: by store.

    A pod mounts a claim once: the TrainJob CRD keys mounts by volume, and with a second volume of
    the same claim kubelet up to 1.34 never starts the pod (kubernetes#122140). So a directory is
    mounted by itself only where nothing else of its store is.
    """
    wanted = {
        variable: (path, at)
        for variable, path, at in (
            (PLACE, CHECKPOINTS, job.checkpoints),
            ("TENSORBOARD_DIR", TENSORBOARD, job.tensorboard),
        )
        if at
    }
    whole = {store: mount.path.rstrip("/") for store, mount in sorted(job.storage.items())}
    used = [at.store for _, at in wanted.values()]
    whole |= {
        store: f"/stores/{store}" for store in used if used.count(store) > 1 and store not in whole
    }
    mounts = [Mount(store=store, claim=claims[store], path=path) for store, path in whole.items()]
    mounts += [
        Mount(
            store=at.store,
            claim=claims[at.store],
            path=path,
            directory=job.in_run(at.directory),
        )
        for path, at in wanted.values()
        if at.store not in whole
    ]
    return tuple(mounts), {
        variable: f"{whole[at.store]}/{job.in_run(at.directory)}" if at.store in whole else path
        for variable, (path, at) in wanted.items()
    }


def _recipe(job: JobConfig, own: OwnRuntimeConfig | None) -> list[str]:
    """Recipe that a runtime has for a job without one: its command, or of kind torchtune what it
    trains, and where."""
    at = own.torchtune if own else None
    if at:
        return [at.model, at.store, at.directory]
    return [*own.command] if own and not command_of(job) and job.arguments is None else []


def _operator(job: JobConfig, wanted: PyTorchJobConfig) -> PyTorchJobSettings:
    return PyTorchJobSettings(
        clean_pods=CLEAN_PODS[wanted.clean_pods],
        restarts=wanted.restarts,
        coordinator=wanted.coordinator,
        priority=job.priority,
        elastic=(job.elastic.min_nodes, job.elastic.max_nodes) if job.elastic else None,
        pull_policy=PULL_POLICIES.get(wanted.image_pull_policy or ""),
        role_labels={
            role: dict(sorted(labels.items()))
            for role, labels in (("Master", wanted.master_labels), ("Worker", wanted.worker_labels))
            if labels
        },
    )
