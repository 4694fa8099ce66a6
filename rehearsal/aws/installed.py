"""The services of the account. A new one is a file in own/, or a file beside this one and its name here."""

from __future__ import annotations

import importlib
from pkgutil import iter_modules

from rehearsal.aws import own
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
    "cloudwatch",
    *(f"own.{each.name}" for each in iter_modules(own.__path__)),
):
    importlib.import_module(f"rehearsal.aws.{_module}")
