"""Which pools can give no nodes, and what AWS said to the launch that Karpenter tried."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from tests.trainyard.operations.status.test_diagnosis import NOW, pool
from trainyard.operations.reach.snapshot import Object, Snapshot
from trainyard.operations.status.pools import ended_at_launch, silent_reservation, unready


def test_an_idle_pool_that_can_give_no_nodes_is_named_with_what_aws_said():
    log = (
        '"EC2NodeClass":{"name":"h100-class"},"error":"operation error EC2: RunInstances, api error'
        " Unsupported: Your requested instance type (p5.48xlarge) is not supported in your"
        ' requested Availability Zone (b). (aws-error-code=Unsupported)"'
    )
    snapshot = Snapshot(
        objects={"nodepools": [pool("h100")]}, logs={"kube-system/karpenter": log}, taken_at=NOW
    )
    [finding] = unready(snapshot, wanted=False)
    assert finding.why.startswith("Unsupported: Your requested instance type (p5.48xlarge) is not")
    assert finding.why.endswith("Availability Zone (b).")


def test_a_refusal_is_said_once_and_with_what_lets_karpenter_ask_again():
    """It keeps the refusal of its dry run for half an hour."""
    said = {"status": "False", "reason": "Unauthorized", "message": "may not ec2:CreateTags"}
    node_class = {
        "kind": "EC2NodeClass",
        "metadata": {"name": "h100-class"},
        "status": {"conditions": [{"type": "ValidationSucceeded", **said}]},
    }
    of_pool = pool("h100")
    of_pool["status"] = {"conditions": [{"type": "NodeClassReady", **said}]}
    objects = {"nodepools": [of_pool], "ec2nodeclasses": [node_class]}
    [finding] = unready(Snapshot(objects=objects, taken_at=NOW), wanted=False)
    assert finding.what == "EC2NodeClass h100-class: ValidationSucceeded is False"
    assert "rollout restart deployment/karpenter" in finding.do and "30 minutes" in finding.do
    [alone] = unready(Snapshot(objects={"nodepools": [of_pool]}, taken_at=NOW), wanted=False)
    assert alone.what == "NodePool h100: NodeClassReady is False"


def reserved(*, looked: bool = True, active: bool = False, terms: bool = True) -> list[str]:
    """What is said of an idle pool of a reservation."""
    ready = {"type": "CapacityReservationsReady", "status": "True" if looked else "Unknown"}
    found = [{"id": "cr-0123456789abcdef0"}]
    node_class = {
        "kind": "EC2NodeClass",
        "metadata": {"name": "h100-class"},
        "spec": {"capacityReservationSelectorTerms": found if terms else []},
        "status": {"conditions": [ready], **({"capacityReservations": found} if active else {})},
    }
    objects = {"nodepools": [pool("h100")], "ec2nodeclasses": [node_class]}
    snapshot = Snapshot(objects=objects, taken_at=NOW)
    told = [finding.what for finding in unready(snapshot, wanted=False)]
    return [what for what in told if "reservation" in what]


def test_a_reservation_that_is_not_active_is_said_once_karpenter_has_looked():
    """check, preview and up cannot know, and Karpenter says that all is well."""
    assert reserved() == ["EC2NodeClass h100-class: no reservation is active: cr-0123456789abcdef0"]
    assert reserved(active=True) == reserved(looked=False) == reserved(terms=False) == []


def waiting_for(
    reservations: list[str], by: str, space: str = "training"
) -> tuple[str, str] | None:
    """What is said of a pod that waits for a pool, after an event about it."""
    node_class = {
        "metadata": {"name": "h100-class"},
        "status": {"capacityReservations": [{"id": one} for one in reservations]},
    }
    about = {"kind": "Pod", "name": "run-0", "namespace": space}
    event = {"involvedObject": about, "source": {"component": by}}
    objects = {"nodepools": [pool("h100")], "ec2nodeclasses": [node_class], "events": [event]}
    meta = {"name": "run-0", "namespace": "training"}
    pod = {"metadata": meta, "spec": {"nodeSelector": {"trainyard.io/pool": "h100"}}}
    return silent_reservation(Snapshot(objects=objects, taken_at=NOW), [pod])


def test_a_full_reservation_is_said_where_karpenter_says_nothing():
    """Karpenter 1.15.0 writes no event, and the scheduler's would name a taint of another node."""
    said = waiting_for(["cr-2", "cr-1"], "default-scheduler")
    assert said is not None
    assert said[0].endswith("while all instances of cr-1, cr-2 are in use")
    assert "--capacity-reservation-ids cr-1 cr-2 prints AvailableInstanceCount" in said[1]
    assert waiting_for(["cr-1"], "karpenter") is None, "it has said why"
    assert waiting_for([], "default-scheduler") is None, "the pool has no reservation"
    assert waiting_for(["cr-1"], "karpenter", space="team-a") is not None, (
        "it spoke of another team"
    )


KEY = "arn:aws:kms:eu-west-1:111122223333:key/1"


def ended(
    *,
    key: str | None = KEY,
    registered: bool = False,
    launched: bool = True,
    seconds: int = 12,
    by: str = "InstanceTerminating",
    claims: Sequence[Object] = (),
) -> list[str]:
    """What is said of a NodePool whose instances ended twice, or whose claims are these. `seconds`: after their
    launch."""
    events = [
        {
            "reason": reason,
            "involvedObject": {"kind": "NodeClaim", "name": f"h100-{claim}"},
            "lastTimestamp": (NOW - timedelta(minutes=30) + timedelta(seconds=at)).isoformat(),
        }
        for claim in (() if claims else ("a1b2c", "d3e4f"))
        for at, reason in (
            (seconds, "TerminatingOnInterruption"),
            (seconds, by),
            *([(0, "Launched")] if launched else []),
            *([(9, "Registered")] if registered else []),
        )
    ]
    ebs = {"encrypted": True, **({"kmsKeyID": key} if key else {})}
    node_class = {
        "kind": "EC2NodeClass",
        "metadata": {"name": "h100-class"},
        "spec": {"blockDeviceMappings": [{"ebs": ebs}]},
    }
    objects = {"nodepools": [pool("h100")], "ec2nodeclasses": [node_class], "events": events}
    objects["nodeclaims"] = [*claims]
    job = {
        "kind": "TrainJob",
        "metadata": {"namespace": "training", "name": "t5"},
        "spec": {"trainer": {"numNodes": 1}},
    }
    snapshot = Snapshot(objects={**objects, "trainjobs": [job]}, taken_at=NOW)
    return [str(finding) for finding in ended_at_launch(snapshot)]


def test_instances_that_end_before_they_are_nodes_name_the_key_of_their_disks():
    [said] = ended()
    assert "NodePool h100: what Karpenter launched did not join: h100-a1b2c, h100-d3e4f" in said
    assert f"environment.kms_key_arn: {KEY}" in said and "trainyard policy --key" in said


def test_instances_that_were_nodes_are_not_named():
    assert ended(registered=True) == ended(registered=True, key=None) == []


def test_without_a_key_in_the_stack_file_the_default_of_ebs_and_the_quota_of_disks_are_named():
    """Either ends instances at launch. Events live for an hour: of a claim without its launch nothing is known."""
    [said] = ended(key=None)
    assert "did not join: h100-a1b2c, h100-d3e4f" in said and "Client.VolumeLimitExceeded" in said
    assert "the account's default key of EBS" in said
    assert "Name=tag:karpenter.sh/nodepool,Values=h100 --query" in said
    assert ended(key=None, launched=False) == [] and len(ended(launched=False)) == 1


def test_an_instance_that_ends_long_after_its_launch_or_by_spot_says_nothing_of_disks():
    """Karpenter ends one that does not join after 15 minutes, as for want of an access entry."""
    assert ended(key=None, seconds=910) == []
    assert ended(key=None, by="TerminatingOnInterruption") == []


def test_a_claim_that_karpenter_waits_for_names_the_key_after_three_minutes():
    """Karpenter cannot read of the end of its instance where its queue has the same key."""

    def said(seconds: int, registered: str) -> list[str]:
        conditions = [
            {"type": "Launched", "status": "True"},
            {"type": "Registered", "status": registered},
        ]
        created = (NOW - timedelta(seconds=seconds)).isoformat()
        claim = {
            "kind": "NodeClaim",
            "metadata": {"name": "h100-a1b2c", "creationTimestamp": created},
            "status": {"conditions": conditions},
        }
        return ended(claims=[claim])

    assert "h100-a1b2c" in said(200, "Unknown")[0]
    assert said(100, "Unknown") == [] and said(200, "True") == []
