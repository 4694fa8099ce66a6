"""NVIDIA's GPU Operator, which an existing cluster may have: by what it is found, and how it leaves nodes alone.

Sources: NVIDIA/gpu-operator, deployments (the CRD), controllers/state_manager.go (hasOperandsDisabled:
updateGPUStateLabels then takes the labels that its DaemonSets select off the node) and assets (nodeSelector of each).
"""

from __future__ import annotations

from collections.abc import Mapping

CRD = "clusterpolicies.nvidia.com"
"""A CRD that only the operator has."""
LABEL = "nvidia.com/gpu.deploy.operands"
OFF: Mapping[str, str] = {LABEL: "false"}
"""Label of nodes that the operator leaves alone."""
SELECTED = "nvidia.com/gpu.deploy."
"""Beginning of the labels that the operator's DaemonSets select, and that no node with OFF has."""
