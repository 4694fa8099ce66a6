"""An optional part of an environment: one class with everything that the rest of the program asks
about one part.

The stack file wants a part by a section of `environment`. A part is asked with the settings of that
section, or with its plan, which follows from them. The table of parts: parts.py. The table of what makes
their components: stacks/watching.py, because plans are made without Pulumi.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar, cast

from trainyard.objects.iam.policies import OptionalService
from trainyard.objects.metrics.metrics import Target
from trainyard.objects.queues.queues import QueuesPlan
from trainyard.plans.clusters import AddOnPlan
from trainyard.plans.identity import Identity
from trainyard.plans.system_nodes import SystemPod
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.stores.figures import Stage, UsageCost
from trainyard.stores.goodput import Verdict

Settings = TypeVar("Settings")
Plan = TypeVar("Plan")


class HasParts(Protocol):
    """The plan of an environment, as far as parts read it."""

    @property
    def parts(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Around:
    """Facts that the plan of a part follows from, beside its own settings."""

    wanted: EnvironmentConfig
    efa_instance_types: tuple[str, ...]
    """Instance types of pools that have EFA devices."""
    queues: QueuesPlan | None
    targets: tuple[Target, ...]
    """Programs of parts that have metrics."""


class Silence(NamedTuple):
    """Time without a log line of any rank, and what follows."""

    minutes: int
    then: str
    """Fate of the run, from a verb on."""


class Part(ABC, Generic[Settings, Plan]):
    """An optional part of an environment. `Settings`: its class in trainyard/settings/. `Plan`: its class
    in plans/. A method that a part does not define says nothing."""

    name: ClassVar[str]
    """Key of its plan in `EnvironmentPlan.parts`."""
    section: ClassVar[str]
    """The field of `EnvironmentConfig` that wants it."""
    setting: ClassVar[str] = ""
    """The setting of that section without which the part goes; empty: the section itself."""
    compared: ClassVar[str] = ""
    """The setting of that section that is compared with the cost of a plan; empty: none."""
    namespace: ClassVar[str] = ""
    """Its own namespace in the cluster, which no job and no team can have; empty: it has none."""
    services: ClassVar[tuple[OptionalService, ...]] = ()
    """Services of AWS that whoever deploys calls for this part alone."""

    ends_reclaimed_pods: ClassVar[bool] = False
    """It ends the pods of a node that AWS takes back as soon as AWS says so."""

    def settings(self, wanted: EnvironmentConfig) -> Settings | None:
        """The section of the stack file; None where the environment does without."""
        return cast("Settings | None", getattr(wanted, self.section))

    def of(self, environment: HasParts) -> Plan | None:
        """Its plan; None where the environment does without it."""
        return cast("Plan | None", environment.parts[self.name])

    @abstractmethod
    def plan(self, me: Identity, settings: Settings, around: Around) -> Plan | None:
        """Plan of its component; None where the section does not want it."""

    # Rules.

    def errors(
        self, settings: Settings, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputError]:
        """Settings that cannot work."""
        yield from ()

    def warnings(
        self, settings: Settings, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputWarning]:
        """Warnings about settings that work."""
        yield from ()

    def isolated_warnings(self, settings: Settings) -> Iterator[InputWarning]:
        """Warnings about settings in an environment whose nodes have no way to the internet."""
        yield from ()

    def log_days(self, settings: Settings) -> Mapping[str, int]:
        """Setting, without `environment.` → days for which CloudWatch Logs keeps what is written."""
        return {}

    # What follows for the rest of the environment.

    def apis(self, settings: Settings) -> tuple[str, ...]:
        """APIs of AWS that its pods call: rows of trainyard/catalog/aws/endpoints.py."""
        return ()

    def add_ons(self, settings: Settings, published: Mapping[str, str]) -> tuple[AddOnPlan, ...]:
        """EKS add-ons that it needs. `published`: name → build for the Kubernetes version."""
        return ()

    def system_pods(self, settings: Settings, wanted: EnvironmentConfig) -> tuple[SystemPod, ...]:
        """Its pods on system nodes."""
        return ()

    def node_images(self, settings: Settings, *, efa: bool) -> tuple[str, ...]:
        """Images of its pods that each node of a pool pulls. `efa`: the node has EFA devices."""
        return ()

    def targets(self, settings: Settings) -> tuple[Target, ...]:
        """Its programs that have metrics."""
        return ()

    def job_variables(self, settings: Settings) -> dict[str, str]:
        """Environment variables by which pods of jobs find it."""
        return {}

    def for_teams(self, settings: Settings) -> Settings | None:
        """Settings of it that the plan of a team reads; None where it reads none."""
        return None

    def job_notes(
        self, settings: Settings, job: JobConfig, verdict: Verdict | None
    ) -> dict[str, str]:
        """Annotations of a job that it reads. `verdict`: on the job's checkpoints; None where nothing
        is known of them."""
        return {}

    # AWS.

    def resource_types(self, plan: Plan) -> tuple[str, ...]:
        """The types of its resources that not every environment has, as Pulumi's AWS provider calls
        them."""
        return ()

    def cost_tag(self, plan: Plan) -> str:
        """Key of the tag by which AWS must count costs for it; empty: it needs none."""
        return ""

    def encrypts(self, plan: Plan) -> tuple[str, ...]:
        """Data of the part that `environment.kms_key_arn` encrypts, beside its log groups."""
        return ()

    # Reports.

    def report(self, plan: Plan, most_nodes: Mapping[str, int]) -> list[str]:
        """Its section of `trainyard plan`. `most_nodes`: pool → nodes that it has at most."""
        return []

    def usage_costs(self, plan: Plan) -> tuple[UsageCost, ...]:
        """Costs of the part that grow with use."""
        return ()

    def silence(self, plan: Plan) -> Silence | None:
        """Silence after which it takes a run for hung; None: it does not look."""
        return None

    def monthly_limit(self, plan: Plan) -> Decimal | None:
        """USD that the environment is meant to cost in a calendar month, at most; None without a limit."""
        return None

    def stages(self, plan: Plan, nodes: tuple[str, ...]) -> tuple[Stage, ...]:
        """Stages that take noticeable time. `nodes`: the stages that whatever needs nodes waits
        for."""
        return ()
