"""The services of the account. A new one is a file and its name here."""

from __future__ import annotations

import importlib

from rehearsal.aws.service import SERVICES

__all__ = ["SERVICES"]

for _module in (
    "network",
    "sharing",
    "endpoints",
    "capacity",
    "instances",
    "images",
    "quotas",
    "dry_runs",
    "storage",
    "backups",
    "efs",
    "services",
    "sessions",
    "eks",
    "access",
    "nodegroups",
    "upgrades",
    "addons",
    "workspaces",
    "budgets",
    "cloudwatch",
):
    importlib.import_module(f"rehearsal.aws.{_module}")
