"""The API group of roles in the cluster, and of what binds them to somebody."""

from __future__ import annotations

RBAC = "rbac.authorization.k8s.io"
