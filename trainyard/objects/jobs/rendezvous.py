"""Variables by which the pods of a gang wait for each other: torchrun reads each of its options
from a variable PET_<OPTION>, unless its command line has the option (torch,
distributed/argparse_util.py).

The Trainer leaves the variable alone: it is none of those that its webhook reserves (v2.1.0 and v2.3.0,
pkg/constants). training-operator v1.8.1 sets it only where elasticPolicy.rdzvConf does
(pkg/controller.v1/pytorch/elastic.go).
"""

from __future__ import annotations

from trainyard.catalog.limits import FIRST_NODE_SECONDS, NODES_SECONDS

MASTER_PORT = 23456
"""Port at which training-operator v1.8.1 has the pods of a PyTorchJob meet
(pkg/apis/kubeflow.org/v1, PyTorchJobDefaultPort)."""
VARIABLE = "PET_RDZV_CONF"
"""torchrun's --rdzv_conf."""
OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""Gives each round of a rendezvous a store of its own. Ranks otherwise write their addresses into the store of the
rendezvous itself, under keys that are the same in each round (torch 2.15, distributed/rendezvous.py,
_create_c10d_store): after a node has left or come they can find those of the round before, and do not meet."""
OPTION = "--rdzv_conf"
JOIN, READ, WHOLE = "join_timeout", "read_timeout", "timeout"
"""Keys of the time that c10d and etcd-v2 wait for all nodes, c10d for the node that hosts its
store, and static for both."""
KEYS: dict[str, tuple[str, ...]] = {
    "c10d": (JOIN, READ),
    "etcd-v2": (JOIN,),
    "static": (WHOLE,),
    "etcd": (WHOLE,),
}
"""Backend → the limits that it reads. read_timeout of etcd-v2 is for one answer of etcd, and stays as
it is."""
SECONDS = {JOIN: NODES_SECONDS, READ: FIRST_NODE_SECONDS, WHOLE: NODES_SECONDS}


def conf(*keys: str) -> str:
    """Value of --rdzv_conf with these limits; with all of them where none is named."""
    return ",".join(f"{key}={SECONDS[key]}" for key in keys or SECONDS)


def read(text: str) -> dict[str, str]:
    """Keys and values in a value of --rdzv_conf."""
    pairs = (pair.partition("=") for pair in text.strip("\"'").split(","))
    return {key.strip(): value.strip() for key, _, value in pairs if key.strip()}


_ADDRESS = "$(PET_MASTER_ADDR)"


MASTER = f"{_ADDRESS}:$(PET_MASTER_PORT)"
"""Where a gang meets, in the words of Kubernetes."""


def with_whole_name(command: tuple[str, ...], namespace: str) -> tuple[str, ...]:
    """The command of a TrainJob's torchrun with the whole name of the first pod, which that pod has in
    its /etc/hosts. By the short name it knows itself only once DNS does: torch asks once, and a first
    node that is not sure waits for itself (torch: rendezvous/utils.py, _matches_machine_hostname)."""
    short = f"--rdzv_endpoint={MASTER}"
    whole = short.replace(_ADDRESS, f"{_ADDRESS}.{namespace}.svc.cluster.local")
    return tuple(whole if word == short else word for word in command)
