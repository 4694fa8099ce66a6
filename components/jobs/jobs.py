"""The training runs of a stack, whichever controllers run them.

What they run: `jobs` in the stack file. What their objects say: trainyard/objects/jobs/trainer.py and
trainyard/objects/jobs/pytorch.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.base.chart import judged_by
from components.jobs import order, run_before, wait_for_job
from components.jobs.loads import Waits
from components.jobs.schedules import Schedule
from trainyard.catalog.job_kinds import ENGINE_TYPES, ENTRY_KINDS, JOB_KINDS
from trainyard.plans.identity import Identity
from trainyard.plans.jobs import RUN, ConfigMapPlan, JobPlan, Spec, beside_name, files_name

DELETION = "pulumi.com/deletionPropagationPolicy"
"""Annotation that the provider of Kubernetes reads when it deletes an object (pulumi-kubernetes#3011). It
deletes in the foreground by default."""


class Jobs(pulumi.ComponentResource):
    """Runs that are started by a changed identity, and by nothing else. One component holds them
    all: one for each job would double what the program costs."""

    def __init__(
        self,
        name: str,
        plans: Mapping[str, JobPlan],
        *,
        identity: Identity,
        starts: Mapping[str, str],
        namespace: pulumi.Input[str],
        kubeconfig: pulumi.Output[str],
        needs: Mapping[str, Sequence[pulumi.Resource]],
        waits: Waits | None = None,
        crds: Mapping[str, k8s.helm.v3.Release] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`plans`: a job stands behind those that it comes after. `starts`: what is said when a run of a job
        begins. `needs`: what a job waits for. `waits`: for what is loaded before a job. `crds`: API version →
        the release of this stack that brings its kinds."""
        super().__init__("trainyard:jobs:Jobs", name, None, opts)
        self._stack = f"urn:pulumi:{identity.stack}::{identity.project}"
        # The engine knows hooks by name: a program can have the jobs of several teams.
        prefix = name.removesuffix("jobs")
        self._crds = crds or {}
        self._namespace, every = namespace, [_alone(prefix, kubeconfig), _said(prefix, starts)]
        runs: dict[str, pulumi.Resource] = {}
        for key, plan in plans.items():
            if plan.schedule:
                beside = [self._beside(key, made, needs[key]) for made in plan.objects]
                Schedule(
                    key,
                    plan,
                    plan.schedule,
                    namespace=namespace,
                    needs=[*needs[key], *beside],
                    opts=pulumi.ResourceOptions(parent=self),
                )
                continue
            loaded = [waits.hook(key, plan.loads)] if waits and plan.loads else []
            before = [*order.hooks(key, plans, kubeconfig), *loaded, *every]
            files = [self._files(key, plan.files)] if plan.files else []
            beside = [self._beside(key, made, needs[key]) for made in plan.objects]
            # A run that is not made ends those after it, and a run is gone before one it was made from.
            earlier = [runs[each] for each in order.made_before(plan)]
            before_it = [*needs[key], *files, *beside, *earlier]
            run = self._run(key, plan, before, needs=before_it)
            runs[key] = run
            if plan.wait != "none":
                _wait(run, plan, kubeconfig, identity.stack)
        self.register_outputs({})

    def _options(
        self, name: str, kind: str, needs: Sequence[pulumi.Resource] = ()
    ) -> pulumi.ResourceOptions:
        """Options of a job's objects. The alias keeps objects that were made while each job was a
        component of its own: a paid run is not replaced. `kind`: version and kind, such as
        core/v1:ConfigMap."""
        before = f"{self._stack}::trainyard:jobs:Job$kubernetes:{kind}::{name}"
        return pulumi.ResourceOptions(parent=self, depends_on=list(needs), aliases=[before])

    def _files(self, name: str, plan: ConfigMapPlan) -> k8s.core.v1.ConfigMap:
        logical = files_name(name)
        return k8s.core.v1.ConfigMap(
            logical,
            metadata={"name": plan.name, "namespace": self._namespace},
            data=dict(plan.data),
            immutable=True,
            opts=self._options(logical, "core/v1:ConfigMap"),
        )

    def _beside(self, name: str, made: Spec, needs: Sequence[pulumi.Resource]) -> pulumi.Resource:
        """A ConfigMap or a runtime that the job's file brings."""
        kind, given = made["kind"], made["metadata"]
        logical = beside_name(name, made)
        version = "core/v1" if kind == "ConfigMap" else made["apiVersion"]
        # A runtime's CRD and webhook come with the Trainer's chart.
        opts = self._options(logical, f"{version}:{kind}", needs)
        metadata = k8s.meta.v1.ObjectMetaArgs(
            name=given["name"],
            namespace=None if kind == "ClusterTrainingRuntime" else self._namespace,
            labels=given.get("labels"),
            annotations=given.get("annotations"),
        )
        if kind == "ConfigMap":
            return k8s.core.v1.ConfigMap(
                logical, metadata=metadata, data=made.get("data"), opts=opts
            )
        return k8s.apiextensions.CustomResource(
            logical,
            api_version=made["apiVersion"],
            kind=kind,
            metadata=metadata,
            spec=self._spec(made["apiVersion"], made["spec"]),
            opts=opts,
        )

    def _run(
        self,
        name: str,
        plan: JobPlan,
        before: Sequence[pulumi.ResourceHook | pulumi.ResourceHookFunction],
        needs: Sequence[pulumi.Resource],
    ) -> k8s.apiextensions.CustomResource:
        # Runtime, claims, files and pool are named in the spec and not referred to: at destroy the run
        # ends first.
        it = JOB_KINDS[plan.kind]
        version = it.api_version
        opts = self._options(name, f"{version}:{plan.kind}", needs)
        # A job that changes its kind is replaced, too: as another resource it would run beside its end.
        others = [_of_kind(kind) for kind in ENTRY_KINDS if kind != plan.kind]
        opts.aliases = [*(opts.aliases or ()), *others]
        # Controllers write to the spec (suspend, overrides); a paid run follows its identity only.
        opts.ignore_changes = ["spec"]
        opts.replace_on_changes = [f'metadata.annotations["{RUN}"]']
        opts.delete_before_replace = True
        opts.hooks = pulumi.ResourceHookBinding(before_create=[*before])
        return k8s.apiextensions.CustomResource(
            name,
            api_version=version,
            kind=plan.kind,
            spec=self._spec(version, plan.spec),
            metadata={
                "name": plan.name,
                "namespace": self._namespace,
                "annotations": {RUN: plan.run, **plan.annotations}
                | ({} if it.deletion == "foreground" else {DELETION: it.deletion}),
                **({"labels": dict(plan.labels)} if plan.labels else {}),
            },
            opts=opts,
        )

    def _spec(self, version: str, spec: Spec) -> pulumi.Input[Mapping[str, Any]]:
        return judged_by(self._crds[version], spec) if version in self._crds else spec


def _of_kind(kind: str) -> pulumi.Alias:
    """Names the job as it was while its entry had another kind."""
    return pulumi.Alias(type_=ENGINE_TYPES[kind])


def _said(prefix: str, starts: Mapping[str, str]) -> pulumi.ResourceHook:
    """One hook for all jobs, which says a line whenever a run begins. Only the engine knows when it
    makes a deleted run again: it asks for the line, in a preview too. `starts`: the line of each
    job."""
    return pulumi.ResourceHook(
        f"{prefix}job-starts",
        lambda run: pulumi.info(starts[run.name]),
        pulumi.ResourceHookOptions(on_dry_run=True, ignore_errors=True),
    )


def _alone(prefix: str, kubeconfig: pulumi.Output[str]) -> pulumi.ResourceHook:
    """One hook for all jobs, which lets a run begin when nothing is left of the run before it. A preview
    waits for nothing."""

    async def wait(run: pulumi.ResourceHookArgs) -> None:
        job = run.new_inputs or {}
        config, meta = await kubeconfig.future(), job.get("metadata") or {}
        if config:
            await run_before.gone(
                config,
                job["kind"],
                meta["namespace"],
                meta["name"],
                say=lambda what: pulumi.info(f"{run.name} {what}"),
            )

    return pulumi.ResourceHook(f"{prefix}job-alone", wait)


def _wait(
    run: pulumi.CustomResource, plan: JobPlan, kubeconfig: pulumi.Output[str], stack: str
) -> None:
    """Hold `up` until the run is where the plan wants it; a preview waits for nothing. A run that
    fails fails the update at its end, when what left the stack file is gone."""
    if pulumi.runtime.is_dry_run():
        return
    # In a thread: other resources go on meanwhile.
    pulumi.Output.all(run.id, kubeconfig).apply(
        lambda known: asyncio.to_thread(
            wait_for_job.wait_or_report,
            known[1],
            plan.kind,
            plan.namespace,
            plan.name,
            until=plan.wait,
            minutes=plan.wait_minutes,
            stack=stack,
        )
    )
