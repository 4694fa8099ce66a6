"""Data and weights in stores, before the jobs that need them ask for GPUs.

A Job of Kubernetes loads each of them, on a node without GPUs: trainyard/objects/jobs/load.py. Hooks wait for
it: after it is made, and before each run that needs it begins. An `up` that is killed between leaves a Job that
loads on, for which the run of the next one waits.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.jobs.unanswered import Answers
from components.jobs.wait_for_job import (
    Kubectl,
    answer,
    jobs_named,
    kubectl_of,
    listed,
    refusal,
    silence,
)
from trainyard.catalog.job_kinds import outcome
from trainyard.catalog.logs.first_end import OUT_OF_MEMORY
from trainyard.objects.jobs.load import settings_of
from trainyard.plans.jobs import LoadPlan, Spec

LABEL = "trainyard.io/load"
"""Label of the pods of a load, whose value is its name."""
POLL_SECONDS = 3.0
COMPLETE, FAILED, LOADING, GONE = "Complete", "Failed", "loading", "gone"
"""States of a Job: the first two are its conditions."""
MANY = "about 2 million"
"""Files whose names the 2 GiB of a pod hold: 860 bytes each at the peak, of a load that goes on (measured)."""
UNSEEN = 5
"""Looks in a row that find no Job, after which it is made anew: somebody deleted it."""


class LoadFailed(RuntimeError):
    """A load has failed, or was not over in time; the message says why."""


class Waits:
    """Waits of an update for its loads: one for each, however many runs need it."""

    def __init__(self, kubeconfig: pulumi.Output[str]) -> None:
        self._kubeconfig = kubeconfig
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def hook(self, name: str, plans: Sequence[LoadPlan]) -> pulumi.ResourceHook:
        """A hook that is over when everything is loaded. A preview waits for nothing."""

        async def wait(_: pulumi.ResourceHookArgs) -> None:
            config = await self._kubeconfig.future()
            if config:
                await asyncio.gather(*(self._task(config, plan) for plan in plans))

        return pulumi.ResourceHook(f"{name}-loaded", wait)

    def _task(self, kubeconfig: str, plan: LoadPlan) -> asyncio.Task[None]:
        if plan.name not in self._tasks:
            self._tasks[plan.name] = asyncio.create_task(
                until_loaded(kubeconfig, plan, say=lambda text: pulumi.info(f"{plan.name} {text}"))
            )
        return self._tasks[plan.name]


class Loads(pulumi.ComponentResource):
    """The Jobs that load, one for each place, whichever jobs need it."""

    jobs: dict[str, pulumi.Resource]
    """Name of a load → its Job."""

    def __init__(
        self,
        name: str,
        plans: Mapping[str, LoadPlan],
        *,
        namespace: pulumi.Input[str],
        claims: Mapping[str, k8s.core.v1.PersistentVolumeClaim],
        needs: Mapping[str, Sequence[pulumi.Resource]],
        waits: Waits,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`needs`: name of a load → what its pod waits for, beside its claims: nodes, and an identity."""
        super().__init__("trainyard:jobs:Loads", name, None, opts)
        self._namespace, self._waits = namespace, waits
        program = next(iter(plans.values())).program
        files = k8s.core.v1.ConfigMap(
            f"{name}-program",
            metadata={"name": program.name, "namespace": namespace},
            data=dict(program.data),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.jobs = {
            key: self._job(plan, [claims[each] for each in plan.stores], [files, *needs[key]])
            for key, plan in plans.items()
        }
        self.register_outputs({})

    def _job(
        self,
        plan: LoadPlan,
        claims: list[k8s.core.v1.PersistentVolumeClaim],
        needs: list[pulumi.Resource],
    ) -> pulumi.Resource:
        beside = [
            k8s.apiextensions.CustomResource(
                f"{plan.name}-token",
                api_version=made["apiVersion"],
                kind=made["kind"],
                metadata={**made["metadata"], "namespace": self._namespace},
                spec=made["spec"],
                opts=pulumi.ResourceOptions(parent=self, depends_on=needs),
            )
            for made in plan.objects
        ]
        spec: Any = plan.spec
        return k8s.batch.v1.Job(
            plan.name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=plan.name,
                namespace=self._namespace,
                labels={LABEL: plan.name},
                annotations={"pulumi.com/skipAwait": "true"},  # hooks wait, and not for 10 minutes
            ),
            spec=spec,
            opts=pulumi.ResourceOptions(
                parent=self,
                # Its pod names claims, files and pool, and no input refers to them.
                depends_on=[*claims, *needs, *beside],
                # Of a file system that is made anew under the same names, the data is gone.
                replace_with=[*claims],
                # What is loaded is there: another image loads nothing anew.
                ignore_changes=["spec"],
                delete_before_replace=True,
                # So a run of other data goes on until those of its successor are there.
                hooks=pulumi.ResourceHookBinding(
                    after_create=[self._waits.hook(plan.name, [plan])]
                ),
            ),
        )


async def until_loaded(
    kubeconfig: str, plan: LoadPlan, *, say: Callable[[str], object], poll: float = POLL_SECONDS
) -> None:
    """Return when a load is complete. `say` is told how far it is. `poll`: seconds between two looks.

    A Job that failed in an earlier update, or that somebody deleted, is made anew: its pod goes on where the
    last one ended. Raises LoadFailed where it fails now, or after the hours of the plan.
    """
    if not shutil.which("kubectl"):
        raise LoadFailed(
            f"nobody can see whether {plan.name} is complete. Fix: install kubectl on this machine"
        )
    deadline = time.monotonic() + plan.wait_hours * 3600
    with kubectl_of(kubeconfig, plan.namespace) as kubectl:
        await asyncio.to_thread(_follow_corrections, kubectl, plan, say)
        known, gone, said = False, 0, ""
        answers = Answers(
            "waits for its Job", partial(silence, kubectl, "jobs.batch"), say, ends=False
        )
        while time.monotonic() < deadline:
            # In threads: other resources go on meanwhile.
            state = await asyncio.to_thread(_state, kubectl, plan.name)
            await asyncio.to_thread(answers.look, answered=bool(state))
            gone = gone + 1 if state == GONE else 0
            if state == COMPLETE:
                return
            if state == FAILED and known:
                raise LoadFailed(await asyncio.to_thread(_failed, kubectl, plan))
            if state == FAILED or gone >= UNSEEN:
                say(f"is made anew: its Job {'had failed' if state == FAILED else 'was deleted'}")
                await asyncio.to_thread(_again, kubectl, plan)
                gone = 0
            elif state == LOADING:
                said = await asyncio.to_thread(_tell, kubectl, plan, said, say)
            known = known or state in (LOADING, FAILED)
            await asyncio.sleep(poll)
    raise LoadFailed(
        f"{plan.name} is not over after {plan.wait_hours:g} hours (wait_hours), and loads on. Fix: run"
        " `pulumi up` again, which goes on waiting"
    )


def _state(kubectl: Kubectl, name: str) -> str:
    """State of the Job; empty where the API server does not answer."""
    jobs = jobs_named(kubectl, "jobs.batch", name)
    if not jobs:
        return "" if jobs is None else GONE
    return outcome(jobs[0]) or LOADING


def _follow_corrections(kubectl: Kubectl, plan: LoadPlan, say: Callable[[str], object]) -> None:
    """End what an earlier update began and the stack file has corrected since.

    A load of another source into the directory would fill it to its end, and nobody may load into it then. Pulumi
    deletes the Job of a corrected entry only once everything new is made, which waits for this load. A pool is no
    part of a name, as what is loaded is the same: the pod of a corrected one would wait for its old nodes.
    """
    for job in listed(kubectl, "jobs.batch", f"--selector={LABEL}") or []:
        name, its = job["metadata"]["name"], settings_of(job["spec"])
        if outcome(job):
            continue
        if name == plan.name and not _nodes(plan.spec) <= _nodes(job["spec"]):
            say(f"is made anew, in pool {plan.pool}")
            _again(kubectl, plan)
        elif name != plan.name and its["to"] == settings_of(plan.spec)["to"]:
            say(f"ends the load of {its['what']} into the same directory: Job {name}")
            _delete(kubectl, name)


def _nodes(spec: Spec) -> Set[tuple[str, str]]:
    """Labels of the nodes on which a Job's pod can be."""
    return spec["template"]["spec"]["nodeSelector"].items()


def _tell(kubectl: Kubectl, plan: LoadPlan, said: str, say: Callable[[str], object]) -> str:
    """Say the last line of the log, if it is another than `said`; returns it."""
    line = _last_line(kubectl, plan.name) or "its pod waits for a node"
    if line != said:
        say(f"loads {plan.what}: {line}")
    return line


def _last_line(kubectl: Kubectl, name: str) -> str:
    log = answer(*(*kubectl, "logs", f"--selector=job-name={name}", "--tail=1", "--ignore-errors"))
    return log.strip().rpartition("\n")[2]


def _failed(kubectl: Kubectl, plan: LoadPlan) -> str:
    """The sentence of a load that failed, with what its last pod said."""
    why = _killed(kubectl, plan.name) or _last_line(kubectl, plan.name) or "its pods have no log"
    return (
        f"{plan.what} is not in {plan.place}: {why}. No GPU was asked for. Once that is right, `pulumi up` tries"
        f" again (Job {plan.namespace}/{plan.name})"
    )


def _killed(kubectl: Kubectl, name: str) -> str:
    """A sentence about the last pod, where the kernel killed it for its memory, of which its log says nothing."""
    pods = listed(kubectl, "pods", f"--selector=job-name={name}") or []
    last = max(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], default={})
    for each in last.get("status", {}).get("containerStatuses") or []:
        if each["state"].get("terminated", {}).get("reason") == OUT_OF_MEMORY:
            return (
                f"its pod was killed for its memory ({OUT_OF_MEMORY}), which holds the names of {MANY} files."
                " Fix: put the files into archives, or load a part of them with `only` or a longer prefix"
            )
    return ""


def _again(kubectl: Kubectl, plan: LoadPlan) -> None:
    """Make the Job anew, in the place of one that failed."""
    made = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": plan.name,
            "namespace": plan.namespace,
            "labels": {LABEL: plan.name},
        },
        "spec": plan.spec,
    }
    create = (*kubectl, "create", "--filename=-")
    if why := _delete(kubectl, plan.name) or refusal(*create, text=json.dumps(made)):
        raise LoadFailed(f"{plan.name} cannot be made anew: {why}")


def _delete(kubectl: Kubectl, name: str) -> str:
    """The error of deleting a Job; empty where it has none."""
    return refusal(*kubectl, "delete", "jobs.batch", name, "--ignore-not-found", "--wait=true")
