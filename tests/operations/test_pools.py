"""Which pools can give no nodes, and what AWS said to the launch that Karpenter tried."""

from __future__ import annotations

from operations.pools import unready
from operations.snapshot import Snapshot
from tests.operations.test_diagnosis import NOW, pool


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
