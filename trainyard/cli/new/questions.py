"""The questions of `trainyard new`. Each is an option of the same name, and an answer is judged by the rules
of stack files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Answers = Mapping[str, str]
"""Field of a question → its answer. An answer may be empty where the question is optional."""
SOURCE, MAX_GPUS = "source", "max_gpus"
"""Fields of the questions that only a new project needs, and only a team that no environment lists."""
CONTRACT, ENVIRONMENT = "contract", "environment"
"""Fields of the questions about the environment of a team. The first one answers the second."""
NEEDLESS = {
    SOURCE: "beside Pulumi.yaml: requirements.txt names the release",
    MAX_GPUS: "with a team that the environment lists: its entry has the limits",
    ENVIRONMENT: "beside a contract: it names the environment",
}
"""Field of a question that is not always asked → why its option is refused then."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question whose answer stands in the files that are written."""

    field: str
    """Name of the answer."""
    asks: str
    """The question."""
    paths: tuple[str, ...]
    """Beginnings of the paths of settings that the answer decides: errors there are about it."""
    sample: str
    """An answer that stands in while the question is not answered."""
    default: str = ""
    """The answer where somebody gives none; empty where one must be given."""
    optional: bool = False
    """True where the answer may be empty."""

    @property
    def option(self) -> str:
        """Its option."""
        return "--" + self.field.replace("_", "-")

    def of(self, path: str) -> bool:
        """True where an error at this path is about the answer."""
        return path.startswith(self.paths)


_SOURCE = Question(
    field=SOURCE,
    asks="Address from which pip installs Trainyard, such as git+https://<host>/<repository>@<tag>",
    paths=("--source",),
    sample="git+https://example.com/trainyard",
)
QUESTIONS: Mapping[str, tuple[Question, ...]] = {
    "environment": (
        Question(
            field="name",
            asks="Name of the environment, which begins the names of all its resources",
            paths=("stack",),
            sample="dev",
            default="dev",
        ),
        Question(
            field="region",
            asks="AWS region, such as us-east-1",
            paths=("aws:region",),
            sample="us-east-1",
        ),
        Question(
            field="zone",
            asks="Zone of the GPU nodes, such as us-east-1a",
            paths=("environment.zone",),
            sample="us-east-1a",
        ),
        Question(
            field="instance_type",
            asks="Instance type of the GPU nodes",
            paths=("environment.pools",),
            sample="g6e.48xlarge",
            default="g6e.48xlarge",
        ),
        Question(
            field="public_cidrs",
            asks="Ranges that may reach the API server, with commas between them; your own address with"
            " /32: curl https://checkip.amazonaws.com",
            paths=("environment.cluster",),
            sample="203.0.113.7/32",
        ),
        Question(
            field="account",
            asks="AWS account, twelve digits: aws sts get-caller-identity",
            paths=("aws:allowedAccountIds",),
            sample="123456789012",
        ),
        Question(
            field="email",
            asks="E-mail address for a message when a run ends (empty: none)",
            paths=("environment.told",),
            sample="",
            optional=True,
        ),
        _SOURCE,
    ),
    "team": (
        Question(
            field="name",
            asks="Name of the team, such as vision",
            paths=("stack", "team.name", "team.namespace"),
            sample="vision",
        ),
        Question(
            field=CONTRACT,
            asks="File in the folder with the contract of the environment (empty: its stack file is there)",
            paths=("team.contract",),
            sample="",
            optional=True,
        ),
        Question(
            field=ENVIRONMENT,
            asks="Environment, whose stack file is in the folder",
            paths=("team.environment",),
            sample="dev",
            default="dev",
        ),
        Question(
            field=MAX_GPUS,
            asks="The most GPUs that pods of the team have at once",
            paths=("team.max_gpus",),
            sample="16",
            default="16",
        ),
        _SOURCE,
    ),
}
"""Kind of stack → its questions, in their order: an answer is judged beside those before it."""
