"""Variables that the Trainer gives to the pods of a job, by which ranks meet: each mlPolicy of a runtime has its own.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, pkg/constants/constants.go and pkg/runtime/framework/plugins.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

RESERVED_ENV = (
    "PET_NNODES",
    "PET_NPROC_PER_NODE",
    "PET_NODE_RANK",
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
)
"""Variables that the Trainer sets on a torch runtime; its webhook refuses a TrainJob that sets them.
training-operator v1.8.1 sets them, too."""
_OF_MPI = (
    "OMPI_MCA_orte_default_hostfile",
    "OMPI_MCA_plm_rsh_args",
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
)
_OF_JAX = ("JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES")
_OF_XGBOOST = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")
_MPI_REFUSES = (2, 3)
"""The first minor release of the Trainer whose plugin of MPI refuses its variables in a job."""
OTHERS: Mapping[str, tuple[str, ...]] = {"mpi": _OF_MPI, "jax": _OF_JAX, "xgboost": _OF_XGBOOST}
"""Policy that is not for torch → the variables that its plugin sets: no PET_*."""


def policy_name(policy: object) -> str:
    """The framework of a runtime's mlPolicy; empty where it names none that sets variables."""
    found: Any = policy if isinstance(policy, Mapping) else {}
    return next((name for name in ("mpi", "torch", "jax", "xgboost") if name in found), "")


def given(policy: str) -> tuple[str, ...]:
    """Variables that the controller sets; those of torch where the policy is not known."""
    return OTHERS.get(policy, RESERVED_ENV)


def reserved(policy: str, controller: str) -> tuple[str, ...]:
    """Variables that the webhook refuses in a job. The plugin of JAX refuses none, and that of MPI none before 2.3 (its
    Validate, at v2.1.0, v2.2.1 and v2.3.0). `controller`: its name and release."""
    release = re.search(r"(\d+)\.(\d+)", controller)
    refuses_mpi = release is not None and (int(release[1]), int(release[2])) >= _MPI_REFUSES
    if policy == "jax" or (policy == "mpi" and not refuses_mpi):
        return ()
    return given(policy)
