"""A proof with something in every field, for the tests of what is made from it."""

from __future__ import annotations

from trainyard.operations.prove.record import Done, Node, PlannedStage, Proof, Seen

START = "2026-11-27T10:00:00Z"


def whole() -> Proof:
    """A proof whose stages took as long as they were planned."""
    return Proof(
        live=True,
        began=START,
        region="us-east-1",
        zone="us-east-1a",
        limit_usd="15",
        usd="4.20",
        versions={"Trainyard": "0.2.0", "Kubernetes": "1.35"},
        steps=[
            Done(
                name="questions",
                state="done",
                start=START,
                end="2026-11-27T10:00:10Z",
                seconds=10,
                refusals=["environment.zone_id: it is not set"],
            ),
            Done(
                name="small",
                state="done",
                start="2026-11-27T10:01:00Z",
                end="2026-11-27T10:16:00Z",
                seconds=900,
                usd_per_hour="1.40",
                usd_per_hour_after=True,
                most_usd="1.50",
                usd="0.35",
                refusals=["VpcLimitExceeded: the maximum number of VPCs has been reached"],
            ),
        ],
        plan=[
            PlannedStage(stage="cluster", row="eks.cluster", typical=544, slow=683, logs=26),
            PlannedStage(
                stage="NAT gateway", row="ec2.nat-gateway", typical=111, slow=125, logs=30
            ),
            PlannedStage(stage="all of small", row="", typical=774, slow=1008, logs=0),
        ],
        seen=[
            Seen(row="eks.cluster", step="small", start=START, seconds=560),
            Seen(row="ec2.nat-gateway", step="small", start=START, seconds=112),
            Seen(row="all of small", step="small", start=START, seconds=800),
        ],
        nodes=[
            Node(
                created=START,
                instance_type="g6.8xlarge",
                system="Amazon Linux 2023",
                kernel="6.12.46-66.121.amzn2023.x86_64",
                kubelet="v1.35.8-eks-1a2b3c4",
                gpus=1,
                efa=1,
            )
        ],
        probes={"gpu": ["Lustre client 2.15.6", "mount x@tcp:/abc /stores/scratch lustre"]},
        answers=["  warning  account: the caller is somebody", "prove: no errors"],
        verdicts=[
            {
                "line": "all-reduce",
                "of": "1073741824",
                "value": 3.1,
                "unit": "GB/s",
                "verdict": "pass",
            }
        ],
        status=["nodes 2"],
        left=["log group x"],
    )
