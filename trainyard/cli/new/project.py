"""Files that `trainyard new` writes, and the errors of their stack file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from trainyard import HOME
from trainyard.catalog.versions import DEFAULT_KUBERNETES, TRAINERS, known_good
from trainyard.cli.new.questions import CONTRACT, ENVIRONMENT, SOURCE, Answers
from trainyard.decide import plan_stack
from trainyard.problems import At, InputError
from trainyard.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from trainyard.settings.reading.contracts import read_contract_file
from trainyard.settings.reading.files import is_inside, text_of
from trainyard.settings.reading.reader import project_name, read, read_file
from trainyard.settings.reading.yaml_file import as_yaml, read_documents

TEXTS = Path(__file__).parent
"""Folder of project.txt, environment.txt and team.txt. Each has several files: `=== <path>`, then the
text. A stack file is the first one."""
README = "README.md"
PROJECT = "trainyard"
"""Name of a new Pulumi project."""
PROJECT_FILE = "Pulumi.yaml"
SAMPLES = ("workloads/ddp/train.py", "workloads/checkpoints.py")
"""Scripts of the first job of a team."""
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"
"""Image of a first job."""
MOST_NODES = 2
"""Nodes of a first job: the fewest that meet over the network."""
ADDRESS = re.compile(
    r"(git\+(https|ssh)|https|file)://[^\s;#@]+(@[^\s;#@]+){0,2}(#sha256=[0-9a-f]{64})?"
)
"""Address from which pip installs, with a user, a tag and the digest of a wheel: a space or a ; would end
it. pip takes no git+file: without a host."""


Values = Mapping[str, str | None]
"""Placeholder of a text → the text in its place. A line whose placeholder has None is left out."""


@dataclass(frozen=True, kw_only=True)
class New:
    """A stack that is wanted in a folder."""

    kind: str
    """`environment` or `team`."""
    answers: Answers
    folder: Path

    @property
    def stack(self) -> str:
        """Name of the stack."""
        name = self.answers["name"]
        return name if self.kind == "environment" else f"team-{name}"

    @property
    def begins_a_project(self) -> bool:
        """True where the folder has no Pulumi project yet."""
        return not (self.folder / PROJECT_FILE).exists()

    @property
    def is_listed(self) -> bool:
        """True where the environment of a team has an entry for it."""
        if self.answers.get(CONTRACT):
            return "team" in self._promised
        base = self._base() if self.kind == "team" else None
        listed = base.environment.teams if base and base.environment else ()
        return self.answers["name"] in listed

    @property
    def environment(self) -> str:
        """Stack name of a team's environment: what its contract says, or the answer."""
        return str(self._promised.get("stack") or self.answers[ENVIRONMENT])

    @property
    def _promised(self) -> Mapping[str, Any]:
        """The contract of a team's environment, as it is written; empty where there is none."""
        name = self.answers.get(CONTRACT)
        if not name or not is_inside(self.folder, name):
            return {}
        documents, _ = read_documents(text_of(self.folder / name), name)
        promised = documents[0].value if documents else None
        return promised if isinstance(promised, Mapping) else {}

    def files(self) -> dict[str, str]:
        """Path from the folder → text, of every file to write."""
        values = self._values()
        files = _filled(self.kind, values)
        if self.kind == "team":
            files |= {
                f"{self.stack}/{Path(each).name}": (HOME / each).read_text() for each in SAMPLES
            }
        if self.begins_a_project:
            return files | _filled("project", values)
        return {name: text for name, text in files.items() if name != README}

    def errors(self) -> list[InputError]:
        """Errors of the stack file by the rules of `trainyard check`, and of the address."""
        stack_file, *_ = _filled(self.kind, self._values()).values()
        config = yaml.safe_load(stack_file)["config"]
        for job in config.get(f"{self._project}:team", {}).get("jobs", {}).values():
            job.pop("files")  # they are not there yet
        with self.with_a_project() as folder:
            reading = read(config, stack=self.stack, project=self._project)
            planned = plan_stack(reading, folder)
        return [*planned.errors, *_address_errors(self.answers.get(SOURCE, ""))]

    @property
    def _project(self) -> str:
        return PROJECT if self.begins_a_project else project_name(self.folder)

    def _values(self) -> dict[str, str | None]:
        own = self._environment_values() if self.kind == "environment" else self._team_values()
        told = {"project": self._project, "stack": self.stack, "source": self.answers.get(SOURCE)}
        return {**told, "image": IMAGE, "own_image": None, **own}

    def _environment_values(self) -> dict[str, str | None]:
        said = self.answers
        ranges = [each.strip() for each in said["public_cidrs"].split(",")]
        trainer = next(each for each in TRAINERS if known_good(DEFAULT_KUBERNETES, each))
        return {
            "region": as_yaml(said["region"]),
            "zone": as_yaml(said["zone"]),
            "account": as_yaml([said["account"]]),
            "public_access_cidrs": as_yaml(ranges),
            "instance_type": as_yaml([said["instance_type"]]),
            "email": as_yaml([said["email"]]) if said["email"] else None,
            "kubernetes": DEFAULT_KUBERNETES,
            "trainer": trainer,
        }

    def _team_values(self) -> dict[str, str | None]:
        said, base = self.answers, self._base()
        environment = base.environment if base else None
        listed = self.is_listed
        sources = [f"{self.stack}/{Path(each).name}" for each in SAMPLES]
        limit = said["max_gpus"]
        account = base.aws.allowedAccountIds if base else ()
        contract = said.get(CONTRACT)
        return {
            "environment": as_yaml(self.environment),
            "contract": as_yaml(contract) if contract else None,
            "beside": None if contract else "",
            "region": as_yaml(base.region if base else "us-east-1"),
            "account": as_yaml(account) if account else None,
            "listed": as_yaml(said["name"]) if listed else None,
            "namespace": None if listed else as_yaml(self.stack),
            "max_gpus": None if listed else limit if limit.isdecimal() else as_yaml(limit),
            "sources": as_yaml(sources),
            "directory": as_yaml(f"{said['name']}/first"),
            **self._images(environment),
            **_first_job(environment),
        }

    def _images(self, environment: EnvironmentConfig | None) -> dict[str, str | None]:
        """The image of the first job: one of the team's own, where its entry admits no other."""
        listed = (environment.teams if environment else {}).get(self.answers["name"])
        prefixes = listed.image_prefixes if listed else ()
        if not prefixes or IMAGE.startswith(prefixes):
            return {}
        return {"image": None, "own_image": as_yaml(f"{prefixes[0]}first:1")}

    def _base(self) -> StackConfig | None:
        """Settings of the team's environment; None where its contract or its stack file is missing or
        unreadable."""
        if contract := self.answers.get(CONTRACT):
            name = self.answers["name"] if self.is_listed else None
            team = TeamConfig(environment=self.environment, contract=contract, name=name)
            return read_contract_file(team, self.folder).reading.config
        try:
            with self.with_a_project() as folder:
                return read_file(self.environment, folder).config
        except FileNotFoundError:
            return None

    @contextmanager
    def with_a_project(self) -> Iterator[Path]:
        """The folder, or a copy of its stack files and of a contract that has a project beside them."""
        if not self.begins_a_project:
            yield self.folder
            return
        with TemporaryDirectory() as copy:
            folder = Path(copy)
            (folder / PROJECT_FILE).write_text(
                _filled("project", {"project": PROJECT})[PROJECT_FILE]
            )
            contract = self.answers.get(CONTRACT) or ""
            own = [self.folder / contract] if is_inside(self.folder, contract) else []
            for file in [*self.folder.glob("Pulumi.*.yaml"), *own]:
                copied = folder / file.relative_to(self.folder)
                copied.parent.mkdir(parents=True, exist_ok=True)
                copied.write_bytes(file.read_bytes())
            yield folder


def _first_job(environment: EnvironmentConfig | None) -> dict[str, str | None]:
    """Settings of a job that the environment can run, from the first of whatever it has."""
    if environment is None:  # an error says so: any job will do
        return {"runtime": None, "pool": "unknown", "nodes": "1", "store": None, "no_store": None}
    trainer = environment.trainer
    own = [name for name, each in trainer.own_runtimes.items() if each.kind == "torch"]
    pool = next(iter(environment.pools), "unknown")
    stores = [name for name, each in environment.storage.items() if each.teams != "read_only"]
    nodes = environment.pools[pool].max_nodes if pool in environment.pools else 1
    return {
        "runtime": as_yaml(next(iter([*own, *trainer.runtimes]), "unknown")),
        "pool": as_yaml(pool),
        "nodes": str(min(MOST_NODES, nodes)),
        "store": as_yaml(stores[0]) if stores else None,
        "no_store": None if stores else "true",
    }


def _address_errors(source: str) -> Iterator[InputError]:
    if source and not ADDRESS.fullmatch(source):
        yield At("--source").must(
            "be an address that pip installs from",
            got=source,
            fix="write such as git+https://<host>/<repository>@<tag>",
        )


def _filled(name: str, values: Values) -> dict[str, str]:
    """Path → text of each file in a text of TEXTS, without the lines whose placeholders have none."""
    files, lines = dict[str, list[str]](), list[str]()
    for line in (TEXTS / f"{name}.txt").read_text().splitlines(keepends=True):
        asked = [each for each in re.findall(r"<(\w+)>", line) if each in values]
        if any(values[each] is None for each in asked):
            continue
        text = re.sub(r"<(\w+)>", lambda found: str(values.get(found[1], found[0])), line)
        if line.startswith("=== "):
            files[text.removeprefix("=== ").strip()] = lines = []
        else:
            lines.append(text)
    return {path: "".join(lines) for path, lines in files.items()}
