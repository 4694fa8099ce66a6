"""Changes that a control plane never takes back: the next Kubernetes version, and a key."""

from __future__ import annotations

from rehearsal.aws import eks
from rehearsal.aws.eks import INVALID
from rehearsal.aws.operations import Call, Fields, Refused, answers, refuse


@answers("eks", "UpdateClusterVersion")
def _update_version(call: Call) -> Fields:
    """One minor version up, once every node group has the version that the cluster has. The programs
    of the control plane are started anew, on the same data."""
    found = eks.cluster(call, active=True)
    eks.only(call, "name version")
    eks.refuse_second_update(found.view)
    now, wanted = found.view["version"], call["version"]
    refuse(now == wanted, INVALID, f"Cluster is already at the desired version {now}")
    refuse(
        eks.minor(wanted) != eks.minor(now) + 1,
        INVALID,
        f"Unsupported Kubernetes minor version update from {now} to {wanted}",
    )
    behind = {
        name: group.view["version"]
        for name, group in found.parts["Nodegroup"].items()
        if group.view["version"] != now
    }
    refuse(
        behind,
        INVALID,
        f"Nodegroups {sorted(behind)} must be updated to match cluster version {now} before updating"
        " cluster version",
    )
    try:
        found.plane.upgrade(wanted)
    except ValueError as error:
        raise Refused(INVALID, f"unsupported Kubernetes version {wanted}: {error}") from error
    return eks.updated(found.view, "eks.cluster.upgrade", ready=found.plane.ready, version=wanted)


@answers("eks", "AssociateEncryptionConfig")
def _associate_key(call: Call) -> Fields:
    """A key for the secrets, once and for ever (EKS user guide, enable-kms)."""
    view = eks.cluster(call, active=True).view
    eks.refuse_second_update(view)
    refuse(
        view.get("encryptionConfig"),
        INVALID,
        "Encryption is already enabled for the cluster, and its key cannot be changed",
    )
    return eks.updated(view, encryptionConfig=call["encryptionConfig"])
