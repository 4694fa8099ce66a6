"""The component of each kind of store, by the class of its plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from components.stores.brought_efs import BroughtEfs
from components.stores.brought_lustre import BroughtLustre
from components.stores.efs import Efs
from components.stores.lustre import Lustre
from components.stores.s3 import S3
from trainyard.objects.iam.s3 import S3Plan
from trainyard.plans.stores import BroughtEfsPlan, BroughtLustrePlan, EfsPlan, LustrePlan

STORES: Mapping[type, Any] = {
    LustrePlan: Lustre,
    EfsPlan: Efs,
    S3Plan: S3,
    BroughtLustrePlan: BroughtLustre,
    BroughtEfsPlan: BroughtEfs,
}
"""Plan of a store → its component. Every component of a store has the same signature."""
