"""Numbers and names by which sick nodes are found and replaced.

Sources: aws/eks-node-monitoring-agent 1.7.0 (pkg/manager, dcgm_policies.go), kubernetes-sigs/karpenter
1.14 (pkg/controllers/node/health), Kubernetes 1.34 (kubelet's node lease), read in 2026-08; EC2 user guide
(monitoring-system-instance-status-check), read in 2026-11.
"""

from __future__ import annotations

CONDITIONS = (
    "AcceleratedHardwareReady",
    "ContainerRuntimeReady",
    "KernelReady",
    "NetworkingReady",
    "StorageReady",
)
"""Conditions of a Node that the agent writes. False stays until the agent starts anew."""
FOUND_SECONDS = 15
"""Within which the agent has written most of them; those of networks take minutes."""
EVENTS = ("BlockDeviceIOError",)
"""Reasons that the agent tells in an event and in no condition, and that a node does not survive: a
disk that cannot be read or written, on which containers lie (monitors/storage). `EFAErrorMetric` is
not one: the peers of a broken device count the same errors, and a busy network counts them, too."""
LEFT_ALONE = (
    "nothing replaces the node for this, because the peers of a broken device say the same. Where the job"
    " keeps crashing, replace one node, and the next one only if that does not help"
)
"""Remedy for a link of EFA that fails."""
NOTICES = ("SpotInterrupted",)
"""Reasons of Karpenter's events with which EC2 takes the instance in two minutes (karpenter-provider-aws
1.14.1, pkg/controllers/interruption). Karpenter deletes the node, and neither ends pods that must not
be disrupted nor launches nodes for them."""
AT_END = ("NvidiaXID63Error",)
"""Reasons with which a run goes on: a row of GPU memory is replaced at the next reset, and NVIDIA asks
for nothing before."""
FATAL_XIDS = (
    *(46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120),
    *(136, 140, 142, 143, 151, 155, 156, 158),
)
"""Xids with which the agent writes the condition; all others are events."""
BLIND_SECONDS = 15
"""After a longer gap in its own sight the program has seen no lease: an API server that was away makes
no node dead."""
ASK_SECONDS = 30
"""Silence after which EC2 is asked about a node's instance: three renewals of a lease, which kubelet does
every 10 s. A node whose instance EC2 calls stopped, terminated or impaired is replaced at once."""
SILENT_SECONDS = 60
"""Silence before which no node counts as dead for silence alone. A client of Kubernetes notices that its
connection to an API server is dead after 30 s without a frame and 15 s without an answer to its ping
(apimachinery, pkg/util/net/http.go). The next renewal comes within 10 s, and the program's next look within
3 s. The node controller waits 50 s for the same reason, which is tight (kubernetes/kubernetes#127352)."""
TOGETHER_SECONDS = 30
"""Nodes that fell silent within so many seconds have one cause, such as an API server that died. Each
kubelet renews its lease every 10 s, so the last renewals of all are closer together than that."""
PATIENCE_SECONDS = 300
"""Silence for which a node is waited for whose instance runs, or that fell silent with others: its ranks
go on meanwhile. Kubernetes itself waits as long before it ends pods of an unreachable node (the default of
tolerationSeconds). EC2 checks an instance each minute and calls it impaired two or three minutes after it
died, so a dead node does not wait that long."""
GRACE_SECONDS = 5
"""For the pods of a node that still answers: its GPUs write no checkpoint any more."""
SHARE = 0.2
"""Part of a pool that can be replaced within an hour, and one node always: that of Karpenter's node
repair. More have a common cause, which new nodes would have too."""
