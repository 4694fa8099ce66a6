"""What objects of training jobs are made of, by Trainer release.

Sources: CRDs of Trainer 2.1.0 and JobSet 0.10.1 (a test compares); trainer.md §1 for later
releases, §7 for v1 1.8.1. Read 2026-11-21.
"""

from __future__ import annotations

import re
from functools import cache

FIELDS: dict[str, str] = {
    "TrainJob": "apiVersion kind metadata:Metadata status spec:TrainJobSpec",
    "TrainJobSpec": (
        "runtimeRef:Ref initializer suspend managedBy:text trainer:Trainer labels:{text}<=2.1"
        " annotations:{text}<=2.1 podTemplateOverrides:[Override]<=2.1 runtimePatches:[Patch]>=2.2"
        " activeDeadlineSeconds:number>=2.2"
    ),
    "Trainer": (
        "args:[text] command:[text] env:[Env] image:text numNodes:number numProcPerNode<=2.1"
        " numProcPerNode:number>=2.2 resourcesPerNode:Resources"
    ),
    "Override": "targetJobs:[Ref] metadata:Metadata spec:PodPatch",
    "Ref": "apiGroup:text kind:text name:text",
    "Patch": "manager:text time:text trainingRuntimeSpec:PatchedRuntime",
    "PatchedRuntime": "template:PatchedSet",
    "PatchedSet": "metadata:Metadata spec:PatchedSetSpec",
    "PatchedSetSpec": "replicatedJobs:[PatchedJob]",
    "PatchedJob": "name:text template:PatchedTemplate",
    "PatchedTemplate": "metadata:Metadata spec:PatchedSpec",
    "PatchedSpec": "template:PatchedPod",
    "PatchedPod": "metadata:Metadata spec:PodPatch",
    "PodPatch": (
        "affinity containers:[Patched] imagePullSecrets initContainers:[Patched]"
        " nodeSelector:{text} schedulingGates serviceAccountName tolerations:[Toleration]"
        " volumes:[Volume] securityContext>=2.2 terminationGracePeriodSeconds:number>=2.3"
    ),
    "Patched": "env:[Env] name:text volumeMounts:[Mount] securityContext>=2.2",
    "TrainingRuntime": "apiVersion kind metadata:Metadata spec:RuntimeSpec",
    "RuntimeSpec": "mlPolicy:Policy podGroupPolicy template:JobSetTemplate",
    "Policy": "numNodes:number torch:Torch mpi:Mpi jax>=2.2 xgboost>=2.2 flux>=2.2",
    "Torch": "numProcPerNode<=2.1 elasticPolicy<=2.1 envInjection>=2.3",
    "Mpi": "mpiImplementation:text numProcPerNode:number runLauncherAsNode sshAuthMountPath:text",
    "JobSetTemplate": "metadata:Metadata spec:JobSet",
    "JobSet": (
        "coordinator failurePolicy:FailurePolicy managedBy:text network replicatedJobs:[Replicated]"
        " startupPolicy successPolicy suspend ttlSecondsAfterFinished:number"
        " volumeClaimPolicies>=2.2"
    ),
    "FailurePolicy": "maxRestarts:number restartStrategy:text rules",
    "Replicated": (
        "dependsOn:[DependsOn] groupName:text name:text replicas:number template:JobTemplate"
    ),
    "DependsOn": "name:text status:text",
    "JobTemplate": "metadata:Metadata spec:Job",
    "Job": (
        "activeDeadlineSeconds:number backoffLimit:number backoffLimitPerIndex:number"
        " completionMode:text completions:number managedBy:text manualSelector"
        " maxFailedIndexes:number parallelism:number podFailurePolicy podReplacementPolicy:text"
        " selector successPolicy suspend template:PodTemplate ttlSecondsAfterFinished:number"
    ),
    "PyTorchJob": "apiVersion kind metadata:Metadata status spec:PyTorchJobSpec",
    "PyTorchJobSpec": (
        "elasticPolicy:Elastic nprocPerNode:text pytorchReplicaSpecs:{Replica} runPolicy:RunPolicy"
    ),
    "Elastic": (
        "maxReplicas:number maxRestarts:number metrics minReplicas:number nProcPerNode:number"
        " rdzvBackend:text rdzvConf rdzvHost:text rdzvId:text rdzvPort:number standalone"
    ),
    "Replica": "replicas:number restartPolicy:text template:PodTemplate",
    "RunPolicy": (
        "activeDeadlineSeconds:number backoffLimit:number cleanPodPolicy:text schedulingPolicy"
        " suspend ttlSecondsAfterFinished:number"
    ),
    "Metadata": "* annotations:{text} generateName:text labels:{text} name:text namespace:text",
    "Pod": (
        "* affinity containers:[Container] initContainers:[Container] nodeSelector:{text}"
        " priorityClassName:text restartPolicy:text schedulerName:text serviceAccount"
        " serviceAccountName shareProcessNamespace hostIPC hostNetwork hostPID"
        " terminationGracePeriodSeconds:number tolerations:[Toleration] volumes:[Volume]"
    ),
    "Container": (
        "* args:[text] command:[text] env:[Env] envFrom image:text imagePullPolicy:text lifecycle"
        " name:text ports resources:Resources restartPolicy restartPolicyRules volumeMounts:[Mount]"
        " workingDir:text"
    ),
    "PodTemplate": "metadata:Metadata spec:Pod",
    "Env": "name:text value:text valueFrom:Source",
    "Source": "configMapKeyRef:KeyRef fieldRef fileKeyRef resourceFieldRef secretKeyRef:KeyRef",
    "KeyRef": "key:text name:text optional",
    "Resources": "limits:{amount} requests:{amount} claims",
    "Mount": (
        "mountPath:text mountPropagation name:text readOnly recursiveReadOnly subPath:text"
        " subPathExpr:text"
    ),
    "Toleration": "effect:text key:text operator:text tolerationSeconds:number value:text",
    "Volume": (
        "* configMap emptyDir:EmptyDir hostPath name:text nfs persistentVolumeClaim:Claim secret"
    ),
    "EmptyDir": "medium:text sizeLimit:amount",
    "Claim": "claimName:text readOnly",
}
"""Type → its fields. After a colon what each holds: a type, text, number (a whole one), amount, [a
list] or {a map} of them; behind it the minor releases of the Trainer that have it. *: others too,
of which only slips are refused."""


@cache
def fields(form: str, minor: str) -> dict[str, str]:
    """Fields of a type in a minor release of the Trainer → what they hold, "" for anything."""
    found = re.findall(r"([\w*]+):?([^\s<>]*)(?:(<=|>=)(\S+))?", FIELDS[form])
    place = {
        "<=": lambda limit: _order(minor) <= _order(limit),
        ">=": lambda limit: _order(minor) >= _order(limit),
    }
    return {name: held for name, held, sign, limit in found if not sign or place[sign](limit)}


def _order(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))
