"""A namespace in which jobs run, with its claims on the environment's file systems and its share of
the GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi
import pulumi_kubernetes as k8s

from trainyard.objects.iam.policies import Document
from trainyard.objects.teams import team_limits
from trainyard.plans.jobs import ClaimPlan, JobNamespacePlan


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A store as its CSI driver addresses it."""

    handle: pulumi.Output[str]
    attributes: Mapping[str, pulumi.Output[str]] = field(default_factory=dict)
    needs: tuple[pulumi.Resource, ...] = ()
    """Resources that bring its data: in place before anybody mounts it, and gone after."""
    statements: pulumi.Output[list[Document]] | None = None
    """Statements that IAM must have for the CSI driver, so that it can mount the volume."""


REQUEST = "1Gi"
"""Size that a claim asks for: it is bound by name, and the API server lets nobody change the figure
when the store grows."""


class JobNamespace(pulumi.ComponentResource):
    """Namespace, quota, volumes and claims."""

    namespace: pulumi.Output[str]
    claims: dict[str, k8s.core.v1.PersistentVolumeClaim]
    """store → its bound claim."""
    goes_with: k8s.core.v1.Namespace | None
    """The namespace, where what lies in it is deleted with it and not by itself."""

    def __init__(
        self,
        name: str,
        plan: JobNamespacePlan,
        *,
        volumes: Mapping[str, Volume],
        drivers: Mapping[str, pulumi.Resource],
        at_once: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`at_once`: the namespace is deleted with everything in it at once. Others send jobs to it: a
        claim is only deleted after their pods, which end with nothing but the namespace."""
        # The type is part of the URN of everything below: another one would replace it all.
        super().__init__("trainyard:jobs:Workspace", name, None, opts)
        self._drivers, self._namespace = drivers, plan.namespace
        # Training images run as root; host access, privileges and host ports stay refused, but
        # where a job asks for a folder of its node: no level admits that alone.
        level = "privileged" if plan.host_paths else "baseline"
        reserved = {
            claim.store: self._volume(claim, volumes[claim.store], at_once=at_once)
            for claim in plan.claims
        }
        namespace = k8s.core.v1.Namespace(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=plan.namespace,
                labels={"pod-security.kubernetes.io/enforce": level, **plan.labels},
                annotations=dict(plan.annotations) or None,
            ),
            # A volume is only deleted after its claim, so after the namespace.
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[*reserved.values()] if at_once else []
            ),
        )
        self.goes_with = namespace if at_once else None
        self.namespace = namespace.metadata.name.apply(lambda made: made or "")
        if plan.max_gpus:
            self._quota(name, plan.max_gpus)
        self.claims = {
            claim.store: self._claim(claim, reserved[claim.store]) for claim in plan.claims
        }
        self.register_outputs({})

    def _quota(self, name: str, gpus: int) -> k8s.core.v1.ResourceQuota:
        return k8s.core.v1.ResourceQuota(
            f"{name}-gpus",
            metadata={"name": "gpus", "namespace": self.namespace},
            spec=team_limits.gpus(gpus),
            opts=pulumi.ResourceOptions(parent=self, deleted_with=self.goes_with),
        )

    def _volume(
        self, claim: ClaimPlan, volume: Volume, *, at_once: bool
    ) -> k8s.core.v1.PersistentVolume:
        return k8s.core.v1.PersistentVolume(
            f"{self._namespace}-{claim.store}-volume",
            metadata={"name": claim.volume_name},
            spec=k8s.core.v1.PersistentVolumeSpecArgs(
                access_modes=[claim.access_mode],
                capacity={"storage": claim.capacity},
                storage_class_name="",
                persistent_volume_reclaim_policy="Retain",
                mount_options=list(claim.options),
                # Reserved for this namespace: a volume is visible to the whole cluster.
                claim_ref=k8s.core.v1.ObjectReferenceArgs(
                    name=claim.name, namespace=self._namespace
                ),
                csi=k8s.core.v1.CSIPersistentVolumeSourceArgs(
                    driver=claim.driver.name,
                    volume_handle=volume.handle,
                    volume_attributes=dict(volume.attributes),
                ),
            ),
            # Until the last pod is gone, the driver must be there, as for a claim.
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[*volume.needs, *(self._driver(claim) if at_once else [])]
            ),
        )

    def _claim(
        self, claim: ClaimPlan, made: k8s.core.v1.PersistentVolume
    ) -> k8s.core.v1.PersistentVolumeClaim:
        return k8s.core.v1.PersistentVolumeClaim(
            f"{self._namespace}-{claim.store}-claim",
            metadata={"name": claim.name, "namespace": self.namespace},
            spec=k8s.core.v1.PersistentVolumeClaimSpecArgs(
                access_modes=[claim.access_mode],
                storage_class_name="",
                volume_name=made.metadata.name,
                resources=k8s.core.v1.VolumeResourceRequirementsArgs(requests={"storage": REQUEST}),
            ),
            # Who mounts the claim needs the driver on the node, to unmount it too: pods would stay
            # Terminating. A bound volume does not go before its claim: of a file system that is made
            # anew under the same names, the claim goes first.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=self._driver(claim),
                replace_with=[made],
                deleted_with=self.goes_with,
            ),
        )

    def _driver(self, claim: ClaimPlan) -> list[pulumi.Resource]:
        """The add-on of this stack that mounts the volume; none where another stack owns it."""
        add_on = self._drivers.get(claim.driver.add_on)
        return [add_on] if add_on else []
