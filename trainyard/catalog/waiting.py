"""Limits, in seconds, of the time that pods of a gang with a node wait for pods without one.

Waiting costs the nodes that are there. Giving up costs them too: the gang starts anew, spends one of
its restarts, and waits again. So the limits are long, and whoever watches is told while they last:
`trainyard status` and alert NodesCannotLaunch name a gang that waits, with what its nodes cost. Once all
nodes have joined, no limit of these counts any more: a node that dies later is noticed as before.

training-operator 1.8.1 by itself lets a Worker look up its Master 100 times, every 2 s
(pkg/config/config.go, pkg/controller.v1/pytorch/initcontainer.go).
"""

from __future__ import annotations

TORCH_SECONDS = {"join_timeout": 600, "read_timeout": 60, "timeout": 900}
"""Times that torch by itself waits: for all nodes, for the node that hosts the rendezvous, and for
both with the static backend (torch, distributed: elastic/rendezvous/dynamic_rendezvous.py and
c10d_rendezvous_backend.py, launcher/api.py)."""

NODES_SECONDS = 24 * 3600
"""For nodes that join. A day: on-demand GPUs that are sold out in the evening are mostly back within
it, and an error that keeps nodes away for ever is paid for a day at most. The slowest start that
`trainyard plan` prints takes less than an hour. torch hands the limit of the static backend to poll() as
milliseconds in 32 bits: 24 days are the most."""

FIRST_NODE_SECONDS = 3600
"""For the node that hosts a rendezvous of the backend c10d. Shorter than NODES_SECONDS, because this
limit also ends another wait: under a name that only DNS knows, a first node that asks too early takes
itself for another one, and waits for itself (torch: rendezvous/utils.py, _matches_machine_hostname),
with all nodes there and paid for. No start that `trainyard plan` prints is slower.
Scripts and files name it so; trainyard/objects/jobs/rendezvous.py names it otherwise. After the limit the gang
starts anew, and the pod of its first node is created first: it gets a node that is there."""

INIT_POLL_SECONDS = 2
"""Between two lookups of a Master (training-operator 1.8.1, the template of init-pytorch)."""
INIT_TRIES = NODES_SECONDS // INIT_POLL_SECONDS
"""Number of times that a Worker of a PyTorchJob looks up its Master before its pod fails."""
