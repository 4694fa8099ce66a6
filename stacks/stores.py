"""The component of each kind of store, by the class of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.stores.efs import Efs
from components.stores.existing_efs import ExistingEfs
from components.stores.existing_lustre import ExistingLustre
from components.stores.lustre import Lustre
from components.stores.s3 import S3
from trainyard.objects.iam.s3 import S3Plan
from trainyard.plans.stores import EfsPlan, ExistingEfsPlan, ExistingLustrePlan, LustrePlan

STORES: Mapping[type, Any] = {
    LustrePlan: Lustre,
    EfsPlan: Efs,
    S3Plan: S3,
    ExistingLustrePlan: ExistingLustre,
    ExistingEfsPlan: ExistingEfs,
}
"""Plan of a store → its component. Every component of a store has the same signature."""
