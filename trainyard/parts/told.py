"""The program that tells people what becomes of runs, and the topic that it publishes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.catalog import versions
from trainyard.catalog.aws.endpoints import TOPICS
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES
from trainyard.catalog.aws.prices import CAPACITY_SERVICES, Price
from trainyard.command_line import wrapped
from trainyard.objects.programs.told import APP, ToldPlan
from trainyard.parts.emails import EXAMPLE
from trainyard.parts.part import Around, Part, Silence
from trainyard.parts.programs import more_kinds, program_files, program_pod
from trainyard.parts.topics import topic_errors, topic_types
from trainyard.plans.identity import Identity
from trainyard.plans.system_nodes import SystemPod
from trainyard.plans.topic import TopicPlan
from trainyard.problems import At, InputError
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.secrets import names, secrets
from trainyard.settings.told import ToldConfig

HUNG_MINUTES = 15
"""Default of the minutes without a log line after which a run stands still, as those of the alert
RunStandsStill (trainyard/objects/metrics/alerts.py)."""
AT = "environment.told"


class Told(Part[ToldConfig, ToldPlan]):
    """`environment.told`: people hear what becomes of runs."""

    name = section = "told"
    namespace = APP

    def plan(self, me: Identity, settings: ToldConfig, around: Around) -> ToldPlan:
        wanted = around.wanted
        topic = TopicPlan(name=me.name("told"), arn=settings.topic_arn, emails=settings.emails)
        found = _prices(me.region, wanted)
        return ToldPlan(
            stack=me.stack,
            region=me.region,
            image=versions.PYTHON_IMAGE,
            files=program_files("told"),
            role_name=me.name("told"),
            topic=topic,
            key_arn=me.kms_key_arn if topic.own else None,
            hung_minutes=settings.hung_minutes or _hung_minutes(wanted),
            starts_anew=bool(wanted.repair and wanted.repair.hung_minutes),
            keeps_logs=wanted.logs is not None,
            prices={
                pool: {kind: (str(one.usd), _gpus(kind)) for kind, one in types.items()}
                for pool, types in found.items()
            },
            as_of=min(
                (one.as_of for types in found.values() for one in types.values()), default=""
            ),
            secrets=_secrets(),
            more_kinds=more_kinds(wanted),
        )

    def system_pods(self, settings: ToldConfig, wanted: EnvironmentConfig) -> tuple[SystemPod, ...]:
        return (program_pod(APP),)

    def errors(
        self, settings: ToldConfig, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputError]:
        yield from topic_errors(AT, settings.topic_arn, settings.emails, region, fifo=True)
        if settings.topic_arn is None and not settings.emails:
            yield At(f"{AT}.emails").must(
                "not be empty without topic_arn: nobody would be told",
                got="no address",
                fix=f"write such as [{EXAMPLE}], or set topic_arn",
                write=[EXAMPLE],
            )
        anew = wanted.repair.hung_minutes if wanted.repair else None
        if settings.hung_minutes and anew and settings.hung_minutes >= anew > 1:
            yield At(f"{AT}.hung_minutes").must(
                f"be less than repair.hung_minutes, {anew}: repair ends the pods of the run then",
                got=settings.hung_minutes,
                write=anew - 1,
            )

    def apis(self, settings: ToldConfig) -> tuple[str, ...]:
        return (TOPICS,)

    def resource_types(self, plan: ToldPlan) -> tuple[str, ...]:
        return topic_types(plan.topic)

    def encrypts(self, plan: ToldPlan) -> tuple[str, ...]:
        return ("the topic of messages about runs",) if plan.topic.own else ()

    def silence(self, plan: ToldPlan) -> Silence | None:
        return Silence(plan.hung_minutes, "is told as hung")

    def report(self, plan: ToldPlan, most_nodes: Mapping[str, int]) -> list[str]:
        """Report about the receivers of messages. SNS sends the first 1,000 e-mails of a month free of
        charge (SNS pricing)."""
        return wrapped(
            f"the end of each run, a run that logs nothing for {plan.hung_minutes} minutes, and one that does"
            f" not start on its nodes in 15, is told to {plan.topic}: at most 1,000 e-mails a month are"
            " free, and 1,000 more cost 0.02 USD"
        )


def _hung_minutes(wanted: EnvironmentConfig) -> int:
    """The default: earlier than repair, which ends the pods of the run."""
    anew = wanted.repair.hung_minutes if wanted.repair else None
    return max(1, min(HUNG_MINUTES, anew - 1)) if anew else HUNG_MINUTES


def _prices(region: str, wanted: EnvironmentConfig) -> dict[str, dict[str, Price]]:
    """Pool → instance type → an hour of a node; without those whose price is not known."""
    return {
        name: {
            kind: found
            for kind in pool.instance_types
            if (found := wanted.own_prices.price(CAPACITY_SERVICES[pool.capacity], kind, region))
        }
        for name, pool in wanted.pools.items()
    }


def _gpus(instance_type: str) -> int:
    found = GPU_TYPES.get(instance_type) or CPU_TYPES.get(instance_type)
    return found.gpus if found else 0


def _secrets() -> dict[str, str]:
    """The patterns by which a stack file is judged, for the logs of ranks."""
    return {
        "private_key": secrets.PRIVATE_KEY.pattern,
        "token": secrets.TOKEN.pattern,
        "in_url": secrets.IN_URL.pattern,
        "login": names.LOGIN.pattern,
        "assigned": names.ASSIGNED.pattern,
        "name": names.NAME.pattern,
        "no_name": names.NO_SECRET_NAME.pattern,
        "hidden": secrets.HIDDEN,
    }
