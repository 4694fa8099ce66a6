"""CPU requests of pods of charts and EKS add-ons that the stack leaves as upstream has them, in thousandths of
a vCPU."""

from __future__ import annotations

JOBSET = 500
"""values.yaml of the chart of JobSet in that of the Trainer, 2.1.0 and 2.3.0: controller.resources. The
Trainer itself requests nothing."""
KUEUE = 500
"""values.yaml of the chart of Kueue, 0.16.9 and 0.19.2: controllerManager.manager.resources."""
TRAINING_OPERATOR = 100
"""components/charts/training-operator/values.yaml: resources."""
COREDNS, COREDNS_REPLICAS = 100, 2
"""The EKS add-on, without autoscaling."""
EACH_NODE = 150
"""The DaemonSets of each cluster: aws-node, whose two containers request 25 each (amazon-vpc-cni-k8s,
charts/aws-vpc-cni/values.yaml), and 100 of the EKS add-on kube-proxy."""
