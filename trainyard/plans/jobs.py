"""Plans of jobs, of the namespaces and claims that they use, and of the runtimes that run them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from trainyard.catalog.aws.latencies import IMAGE_GB
from trainyard.catalog.aws.storage import Driver

Spec = dict[str, Any]


def maps_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Every map inside a value, which is the first of them where it is one."""
    if isinstance(value, Mapping):
        yield value
        value = [*value.values()]
    if isinstance(value, list | tuple):
        for each in value:
            yield from maps_in(each)


@dataclass(frozen=True, kw_only=True)
class ClaimPlan:
    """One store as a namespace sees it: a static PersistentVolume bound to its own claim."""

    store: str
    driver: Driver
    options: tuple[str, ...]
    """Options of the mount."""
    access_mode: str
    name: str
    """Name of the claim. Another file system has another claim, so that both can exist until jobs
    have moved."""
    volume_name: str
    capacity: str


@dataclass(frozen=True, kw_only=True)
class JobNamespacePlan:
    """A namespace in which jobs run."""

    namespace: str
    claims: tuple[ClaimPlan, ...]
    max_gpus: int | None = None
    host_paths: bool = False
    """Its pods may mount folders of their node."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the namespace, in addition to its Pod Security level."""


@dataclass(frozen=True, kw_only=True)
class RuntimePlan:
    name: str
    framework: str
    spec: Spec
    stores: tuple[str, ...] = ()
    """Stores that its pods mount beside those of a job."""


@dataclass(frozen=True, kw_only=True)
class ConfigMapPlan:
    """Text files, as one object called by its content."""

    name: str
    data: Mapping[str, str]
    paths: Mapping[str, str] = field(default_factory=dict)
    """Name of each file that is in the checkout → its path there."""


def files_name(entry: str) -> str:
    """Logical name of the ConfigMap with the files of a job."""
    return f"{entry}-files"


def beside_name(entry: str, made: Mapping[str, Any]) -> str:
    """Logical name of an object that the file of a job brings."""
    return f"{entry}-{made['kind'].lower()}-{made['metadata']['name']}"


TEAM = "trainyard.io/team"
"""Label of a team's namespace, whose value is the team's name. The admission policies hold where it
exists."""


RUN = "trainyard.io/run"
"""Annotation of a job with the identity of its run."""


def run_number(run: str) -> str:
    """The number in the identity of a run, which `run` of its job says."""
    return run.rpartition("-")[2]


INTERVAL, GOODPUT = "trainyard.io/checkpoint-seconds", "trainyard.io/goodput"
"""Annotations of a job: seconds between two checkpoints, and goodput from 0 to 1, by the plan. Only where
the environment follows its runs: history.progress."""

EXPECTED = "trainyard.io/expected"
"""Annotation of a job with `expected_hours`: Expected."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Quantities that the plan counts for a run, recorded with its job. It has no dollars: with them every new price
    would change every job, and two runs would be counted at prices of two days."""

    hours: float
    """`expected_hours` of the job."""
    nodes: int
    instance_type: str
    """First type of the job's pool."""
    capacity: str
    """Setting of the pool, such as on_demand."""

    def note(self) -> str:
        """Value of the annotation."""
        return json.dumps(asdict(self))

    @staticmethod
    def read(note: str) -> Expected | None:
        """Contents of an annotation; None where somebody else has written it."""
        try:
            return Expected(**json.loads(note))
        except (TypeError, ValueError):
            return None


SWEEP = "trainyard.io/sweep"
"""Annotation of a run of a sweep: its entry, its values and the metric by which it is compared, as JSON."""


def sweep_note(job: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Contents of that annotation of a job in a cluster; None for a job that is no run of a sweep."""
    note = job["metadata"].get("annotations", {}).get(SWEEP)
    return json.loads(note) if note else None


def entry_of_sweep(job: Mapping[str, Any]) -> str | None:
    """Entry of the sweep that a job in a cluster is a run of; None for another job."""
    note = sweep_note(job)
    return note["entry"] if note else None


SCHEDULE = "trainyard.io/schedule"
"""Label of the runs of a schedule, and of their pods, with the entry of the stack file."""

SHELL = "trainyard.io/shell"
"""Label of a job, and of its pod, in which somebody has a terminal or runs one command."""

SHELL_WORDS = ("shell", "notebook", "tensorboard", "checkpoint")
"""Words of the tool that start such a job. Its name is the word, a hyphen and six hexadecimal digits: metrics have
the name of a run, and no label of its pods."""


@dataclass(frozen=True, kw_only=True)
class LoadPlan:
    """Data or weights that are in a store before a job starts: a Job of Kubernetes loads them. Jobs that
    name the same have the same one."""

    name: str
    """Name of the Job, by the content of the load."""
    namespace: str
    what: str
    """The source, in words."""
    place: str
    """Store and directory, as store/directory."""
    pool: str
    """Pool whose nodes have no GPUs."""
    stores: tuple[str, ...]
    """Stores that the pod mounts."""
    program: ConfigMapPlan
    """The program that loads."""
    spec: Spec
    """Spec of the Job."""
    objects: tuple[Spec, ...] = ()
    """The SecretProviderClass of its token."""
    reads_aws: bool
    """Its pod needs the AWS identity of the jobs."""
    gigabytes: float | None
    """Size; None where nobody knows."""
    seconds: float | None
    """Seconds that it takes, from the start of its node. A model; None where the size is not known."""
    from_internet: bool
    wait_hours: float


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """Place of a run in its sweep."""

    entry: str
    """Entry of the stack file that has the sweep."""
    at_most: int | None
    """Runs of the sweep that go on at the same time at most."""
    earlier: tuple[str, ...]
    """Runs of the sweep before it, of which fewer than `at_most` go on when it begins. Empty where it need not
    wait."""
    others: tuple[str, ...] = ()
    """All other runs of the sweep, where there are more than `at_most`: those behind it may go on already."""


@dataclass(frozen=True, kw_only=True)
class SchedulePlan:
    """The schedule of a job: a CronJob, whose pod makes each run."""

    cron: str
    time_zone: str
    replaces: bool
    """A run that still goes on is deleted at the next time; otherwise the next one waits for its end."""
    deadline_minutes: int
    keep_runs: int
    suspended: bool
    runs_a_month: float
    """Times of a month, on average."""
    image: str
    """Image with Python."""
    files: Mapping[str, str]
    """Name → text of the program in the pod."""
    account: str | None
    """Service account of the pod, which the environment has made; None: the schedule makes its own."""


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """One run: its object, and what comes and goes with it."""

    name: str
    namespace: str
    kind: str
    """TrainJob or PyTorchJob."""
    runtime: str | None
    """Runtime of the environment; None for a PyTorchJob, and for a job whose own file brings its
    runtime."""
    pool: str
    stores: tuple[str, ...]
    nodes: int
    image: str = ""
    """Image of the pods that train; empty where nobody knows."""
    image_gb: float = float(IMAGE_GB)
    """Size of that image in the registry."""
    checkpoints: str | None
    """Place that a restart resumes from, as store/directory. For a job that names no store: the
    directory in the container."""
    resumes_from: str | None = None
    """Where a run finds the checkpoint of the run before it, as store/directory; None where it
    begins afresh, or where nobody knows."""
    when_changed: Literal["resume", "afresh"] | None = None
    """Place where the run of a changed job begins; None where nobody has said it."""
    other_directory: str | None = None
    """Directory with which the next run would begin afresh; None where it does so anyway, or where nobody
    knows."""
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Annotations of the job, in addition to its identity: INTERVAL, GOODPUT and EXPECTED."""
    spec: Spec
    files: ConfigMapPlan | None
    objects: tuple[Spec, ...] = ()
    """Other objects of the job's own file, ConfigMaps and runtimes; the SecretProviderClass of its
    secrets."""
    secrets: tuple[str, ...] = ()
    """Names or ARNs of the secrets of Secrets Manager that its pods read."""
    secret_keys: tuple[str, ...] = ()
    """ARNs of the KMS keys of those secrets."""
    priorities: tuple[str, ...]
    """PriorityClasses that its pods need: its own, or its runtime's."""
    expected_hours: float | None
    """Hours that the job runs, as its owner expects."""
    wait: str
    """none, running or complete: what `up` waits for."""
    wait_minutes: int
    after: tuple[str, ...] = ()
    """Entries of jobs that must be complete before it begins."""
    sweep: SweepPlan | None = None
    """None for a job that is no run of a sweep."""
    schedule: SchedulePlan | None = None
    """None for a job that begins with an update."""
    loads: tuple[LoadPlan, ...] = ()
    """Everything that is loaded before it starts."""
    run: str
    """Identity of the run: digest of what it asks for and the `run` counter. Only a change of it
    starts a paid run."""
