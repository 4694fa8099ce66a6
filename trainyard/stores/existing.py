"""Existing file systems: EFS and FSx for Lustre.

They are never created, changed or deleted. What they must be, as AWS describes them:
trainyard/existing/store_faults.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Generic, TypeVar

from trainyard.catalog.aws.questions import STORE_QUESTIONS
from trainyard.plans.identity import Identity
from trainyard.plans.stores import ExistingEfsPlan, ExistingLustrePlan, ExistingStorePlan
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import ExistingNetworkConfig
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.stores import EfsConfig, LustreConfig
from trainyard.stores.efs import Efs
from trainyard.stores.figures import StoreRow
from trainyard.stores.kind import StoreKind, Surroundings
from trainyard.stores.lustre import Lustre

Settings = TypeVar("Settings", LustreConfig, EfsConfig)
Plan = TypeVar("Plan", bound=ExistingStorePlan)
ID = "file_system_id"
CAPACITY = "1200Gi"
"""Nobody reads it, but a PersistentVolume must state a size, and how large the file system is only
AWS knows."""


class ExistingStore(StoreKind[Settings, Plan], Generic[Settings, Plan]):
    """Everything that both kinds of existing file systems have in common."""

    existing = True
    example = {}
    checked_live: ClassVar[str] = ""
    """End of a sentence: the findings of `trainyard check --live` about checkpoints."""

    def plan(
        self, me: Identity, name: str, settings: Settings, *, keep: bool, zones: tuple[str, ...]
    ) -> Plan:
        made: type[Any] = self.plans
        return made(
            identity=me,
            kind=self.name,
            keep=keep,
            path=f"environment.storage.{name}.{self.name}.{ID}",
            file_system_id=settings.file_system_id or "",
            zones=zones,
        )

    def made_from(self, settings: Settings, zone: str) -> list[str]:
        return [self.name, settings.file_system_id or ""]

    def capacity(self, settings: Settings) -> str:
        return CAPACITY

    def without_speed(self, settings: Settings) -> str:
        return "whose speed the stack file does not say, as it exists already"

    def checkpoint_store(self, settings: Settings, region: str) -> None:
        return None

    def checkpoint_warnings(
        self, path: str, name: str, settings: Settings
    ) -> Iterator[InputWarning]:
        yield At(path).warning(
            f"{name} is an existing file system: how long a save takes is not checked{self.checked_live}"
        )

    def errors(self, path: str, settings: Settings, around: Surroundings) -> Iterator[InputError]:
        """Settings of a file system that the stack makes."""
        for each in fields(settings):
            given = getattr(settings, each.name)
            if each.name == ID or not given or given == each.default:
                continue
            yield At(f"{path}.{each.name}").not_set(
                f"with {ID}: this program changes no file system that it did not make",
                got=as_yaml(given)
                if isinstance(given, str | int | float | bool)
                else as_yaml([*given] if isinstance(given, Mapping) else "settings"),
                instead=f"delete {ID}, and the stack makes a file system",
            )

    def resource_types(self, plan: Plan) -> tuple[str, ...]:
        return ()

    def questions(self, plan: Plan) -> tuple[str, ...]:
        return STORE_QUESTIONS[self.name]

    def row(self, plan: Plan) -> StoreRow:
        return StoreRow(kind=f"existing {_NAMES[self.name]}", size="not known", speed="not known")

    def notes(self, name: str, plan: Plan) -> Iterator[str]:
        yield f"{name} is {plan.file_system_id}, which this stack neither changes nor deletes"


VPC_OF = {
    "lustre": "aws fsx describe-file-systems --query 'FileSystems[0].VpcId' --file-system-ids",
    "efs": "aws efs describe-mount-targets --query 'MountTargets[0].VpcId' --file-system-id",
}
"""Command that prints the VPC of a file system of a kind, before its id."""
_NAMES = {"lustre": "Lustre", "efs": "EFS"}


class ExistingLustre(ExistingStore[LustreConfig, ExistingLustrePlan]):
    """A file system in the training zone, mounted over TCP."""

    name, driver = Lustre.name, Lustre.driver
    plans = ExistingLustrePlan
    directories_by_pod, zonal = Lustre.directories_by_pod, Lustre.zonal
    weak_at, needs_client = Lustre.weak_at, Lustre.needs_client
    checked_live = (
        "; `trainyard check --live` says how many fit, and whether the file system keeps data when one of"
        " its servers fails"
    )
    holds_data = Lustre.holds_data

    def mount_options(self, settings: LustreConfig) -> tuple[str, ...]:
        return Lustre().mount_options(settings)

    def questions(self, plan: ExistingLustrePlan) -> tuple[str, ...]:
        """The provider reads it with its tags."""
        return ("fsx:ListTagsForResource", *STORE_QUESTIONS[self.name])


class ExistingEfs(ExistingStore[EfsConfig, ExistingEfsPlan]):
    """A file system with a mount target in each zone that a pool may launch nodes in."""

    name, driver = Efs.name, Efs.driver
    plans = ExistingEfsPlan
    weak_at = Efs.weak_at
    holds_data = Efs.holds_data

    def resource_types(self, plan: ExistingEfsPlan) -> tuple[str, ...]:
        """A directory of a team is an access point, which is the stack's own."""
        return ("aws:efs/accessPoint:AccessPoint",) if plan.apart else ()


def existing_store_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Errors about existing file systems: one in a VPC of the stack, one that would be deleted with the
    stack, one that two stores name."""
    first: dict[str, str] = {}
    for name, store in wanted.storage.items():
        for kind, settings in (("lustre", store.lustre), ("efs", store.efs)):
            if settings is None or settings.file_system_id is None:
                continue
            path, id_ = f"environment.storage.{name}", settings.file_system_id
            if not isinstance(wanted.network, ExistingNetworkConfig):
                yield At(f"{path}.{kind}.{ID}").must(
                    "stand beside network.vpc_id: it names a file system that exists, which has a VPC",
                    got=id_,
                    fix="delete it, and the stack makes a file system; or put vpc_id and private_subnets in the place"
                    f" of network.cidr, those of the VPC that this prints: {VPC_OF[kind]} {id_}",
                )
            if store.data == "delete":
                yield At(f"{path}.data").must(
                    f"be keep with {ID}: this program deletes no file system that it did not make",
                    got="delete",
                    fix=f"write keep, or delete {ID}, and the stack makes a file system",
                    write="keep",
                )
            if (other := first.setdefault(id_, name)) != name:
                yield At(f"{path}.{kind}.{ID}").must(
                    f"be another file system than that of store {other}: a pod cannot mount one twice",
                    got=id_,
                    fix=f"delete {name}, and mount {other} in its place",
                )
