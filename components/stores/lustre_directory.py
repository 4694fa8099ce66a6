"""The directory of one team on a Lustre file system: a Job makes it, because the CSI driver mounts
directories that exist and makes none.

A directory outlives its Job, its team and its stack: data is never deleted here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.unprivileged import container_security
from components.jobs.namespace import Volume
from components.stores.store import Roots
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.plans.directories import DirectoryPlan

AT = "/store"
"""Path in the pod at which it has the root of the store."""
MODE = "0777"
"""Everybody who mounts the directory is of the team, whatever user its containers run as."""


def directory_of(
    whole: Volume,
    plan: DirectoryPlan,
    roots: Roots,
    rules: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> Volume:
    """The team's directory as a file system of its own: the driver mounts whatever stands behind the
    name of the file system (aws-fsx-csi-driver 1.9.0, pkg/driver/node.go). `rules`: that let the node
    of the Job mount the store."""
    made = directory_job(plan, roots.claims[plan.store], whole.handle, rules, opts)
    mount_name = whole.attributes["mountname"]
    return Volume(
        # Free text to the driver, but the kubelet takes two volumes of one handle for one.
        handle=whole.handle.apply(lambda id_: f"{id_}-{plan.team}"),
        attributes={
            **whole.attributes,
            "mountname": mount_name.apply(lambda root: f"{root}/{plan.path}"),
        },
        # A mount of a directory that does not exist fails, and no data says that it does.
        needs=(*whole.needs, made),
    )


def directory_job(
    plan: DirectoryPlan,
    root: k8s.core.v1.PersistentVolumeClaim,
    file_system: pulumi.Input[str],
    rules: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> k8s.batch.v1.Job:
    """A Job that makes the directory, if it is not there. `root`: the claim of the whole store.
    `file_system`: its id, as another file system has no directories. `rules`: that let its node mount
    the store, which no data shows."""
    claim = root.metadata.name.apply(lambda made: made or "")
    return k8s.batch.v1.Job(
        plan.name,
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name=claim.apply(lambda name: f"{plan.team}-{name}"), namespace=root.metadata.namespace
        ),
        spec=k8s.batch.v1.JobSpecArgs(
            template=k8s.core.v1.PodTemplateSpecArgs(spec=_pod(plan, claim)),
        ),
        opts=pulumi.ResourceOptions.merge(
            opts,
            pulumi.ResourceOptions(
                depends_on=rules,
                # The directory is there: another image makes no new one.
                ignore_changes=["spec"],
                replacement_trigger=file_system,
                delete_before_replace=True,
            ),
        ),
    )


def _pod(plan: DirectoryPlan, claim: pulumi.Output[str]) -> k8s.core.v1.PodSpecArgs:
    return k8s.core.v1.PodSpecArgs(
        restart_policy="OnFailure",
        node_selector={NODES_FOR: "system"},
        automount_service_account_token=False,
        enable_service_links=False,
        containers=[
            k8s.core.v1.ContainerArgs(
                name="mkdir",
                image=plan.image,
                command=["mkdir", "-p", "-m", MODE, f"{AT}/{plan.path}"],
                volume_mounts=[k8s.core.v1.VolumeMountArgs(name="store", mount_path=AT)],
                resources=k8s.core.v1.ResourceRequirementsArgs(
                    requests={"cpu": "10m", "memory": "16Mi"}, limits={"memory": "64Mi"}
                ),
                # The root of a new file system is root's, and nobody else may write there.
                security_context=container_security(user=0),
            )
        ],
        volumes=[
            k8s.core.v1.VolumeArgs(
                name="store",
                persistent_volume_claim=k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
                    claim_name=claim
                ),
            )
        ],
    )
