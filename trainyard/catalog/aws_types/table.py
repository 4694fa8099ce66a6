"""The table of AWS types: every resource type of Pulumi's AWS provider that a stack can have.

A new type is a row in the file of its subject. Which calls a row needs: trainyard/catalog/aws/permissions.py.
"""

from __future__ import annotations

from trainyard.catalog.aws_types.cluster import CLUSTER
from trainyard.catalog.aws_types.network import NETWORK
from trainyard.catalog.aws_types.row import AwsType
from trainyard.catalog.aws_types.stores import STORES
from trainyard.catalog.aws_types.watching import WATCHING

AWS_TYPES: dict[str, AwsType] = {**NETWORK, **CLUSTER, **STORES, **WATCHING}
"""By Pulumi's name of the type."""
