"""The words of the tool: what each one does, what it takes, and what to type after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

PLACES = ("--live", "--rehearsal")
"""Options by which somebody says where a word acts."""


class Acts(Enum):
    """Kinds of places in which a word acts."""

    ON_FILES = "it reads files only"
    ASKING = "it reads files, and with --live or --rehearsal it also asks that account"
    THERE = "it acts on an AWS account and its cluster, or in the rehearsal"


@dataclass(frozen=True, kw_only=True)
class Word:
    """A word of the tool."""

    does: str
    """A sentence for `--help`."""
    module: str
    """Its `main` takes the options, and returns the exit code."""
    options: tuple[str, ...] = ()
    """Names in OPTIONS, beside --stack and those of the place."""
    argument: str = "stack"
    """Meaning of its first argument: stack, job, files, shell or kind; empty where it takes none."""
    second: str = ""
    """Meaning of its second argument: into; empty where it takes none."""
    needs: tuple[str, ...] = ()
    """Fields of the options that must not be empty."""
    needs_with_yes: tuple[str, ...] = ()
    """Fields of the options that must not be empty with --yes: nobody sees then what is meant."""
    acts: Acts = Acts.THERE
    example: str
    """Example of what somebody types behind `trainyard`."""
    fails: str
    """Case in which the exit code is 1."""
    then: str = ""
    """The command to type after it, where it does not print one that depends on what it found."""
    otherwise: str = ""
    """The command to type where the exit code is 1."""
    reads: str = ""
    """Name of what it reads, for the line that it prints where that takes long: "the runs of {stack}". Empty where
    it prints lines of its own while it works."""
    by_rehearsal: bool = False
    """The rehearsal has a part of its own in the word: `python -m development <word>` calls it."""

    @property
    def of_a_stack(self) -> bool:
        """True where the word is about a stack, which must be known."""
        return self.argument in ("stack", "job")

    def after(self, code: int) -> str:
        """The command to type after it."""
        return self.otherwise if code else self.then

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of all its options in the order of --help."""
        return (*self.options_alone, *(() if self.acts is Acts.ON_FILES else PLACES))

    @property
    def options_alone(self) -> tuple[str, ...]:
        """Options of the word without those of the place."""
        stack = ("--stack",) if self.argument in ("stack", "job", "files") else ()
        job = ("--job",) if self.argument == "job" else ()
        return (*stack, *job, *self.options)


ERRORS = "the stack file has errors"
NO_ANSWER = "the cluster does not answer"
WORDS: Mapping[str, Word] = {
    # Before anything is created.
    "check": Word(
        does="List all errors of a stack file.",
        module="trainyard.cli.check",
        options=("--policies", "--deadline"),
        acts=Acts.ASKING,
        reads="Pulumi.{stack}.yaml",
        example="check dev --live",
        fails=f"{ERRORS}, or a mandatory policy is violated",
        then="trainyard plan {stack}",
        otherwise="trainyard check {stack}",
    ),
    "plan": Word(
        does="Print nodes, quota, goodput, time to the first step and cost of a stack file.",
        module="trainyard.reports.plan",
        options=("--json", "--picture", "--html"),
        acts=Acts.ON_FILES,
        reads="Pulumi.{stack}.yaml",
        example="plan dev",
        fails=ERRORS,
        then="{preview}",
        otherwise="trainyard check {stack}",
    ),
    "due": Word(
        does="Print what is due for a stack file, until when and what to do.",
        module="trainyard.reports.due",
        options=("--json",),
        acts=Acts.ASKING,
        example="due dev --live",
        fails=ERRORS,
        then="trainyard check {stack}",
        otherwise="trainyard check {stack}",
    ),
    "policy": Word(
        does="Print the IAM policies that deploying a stack needs, as JSON.",
        module="trainyard.reports.policy",
        options=("--part", "--preview", "--key", "--boundary"),
        acts=Acts.ON_FILES,
        example="policy dev --part network",
        fails=ERRORS,
        then="trainyard check {stack} --live",
        otherwise="trainyard check {stack}",
    ),
    "dashboards": Word(
        does="Write the dashboards of a stack with metrics, as Grafana imports them.",
        module="trainyard.reports.dashboards",
        options=("--to",),
        acts=Acts.ON_FILES,
        example="dashboards dev",
        fails=f"{ERRORS}, or the stack has no metrics",
        otherwise="trainyard check {stack}",
    ),
    "contract": Word(
        does="Print what an environment promises a team, as the file that its stack file names.",
        module="trainyard.cli.contract",
        options=("--team",),
        acts=Acts.ON_FILES,
        example="contract --stack dev --team vision > contract.yaml",
        fails=f"{ERRORS}, or the environment has no such team",
        otherwise="trainyard check {stack}",
    ),
    "migrate": Word(
        does="Print each PyTorchJob and TrainJob of YAML files as an entry of a stack file.",
        module="trainyard.migrate.migrate",
        options=("--trainer",),
        argument="files",
        needs=("files",),
        acts=Acts.ON_FILES,
        example="migrate job.yaml --stack dev",
        fails="a job cannot be migrated, a file has a secret in clear, or the stack does not accept an entry",
        then="trainyard check",
    ),
    "new": Word(
        does="Ask for region, zone, addresses and account, and write a project that check accepts.",
        module="trainyard.cli.new.new",
        options=(
            *("--name", "--region", "--zone", "--instance-type", "--public-cidrs"),
            *("--account", "--email", "--environment", "--contract", "--max-gpus", "--source"),
        ),
        argument="kind",
        second="into",
        needs=("kind",),
        acts=Acts.ON_FILES,
        example="new environment platform --region us-east-1 --zone us-east-1a",
        fails="an answer is refused, or a file exists already",
    ),
    "schema": Word(
        does="Print the JSON schema of stack files.",
        module="trainyard.cli.schema",
        options=("--reference",),
        argument="",
        acts=Acts.ON_FILES,
        example="schema > stack.schema.json",
        fails="the output cannot be written",
    ),
    # What runs.
    "status": Word(
        does="Print nodes and jobs, and what keeps a job from running.",
        module="trainyard.operations.status.status",
        options=("--silence",),
        reads="nodes, jobs and the state of {stack}",
        example="status dev --live",
        fails=f"something keeps a job from running, or {NO_ANSWER}",
        then="trainyard watch {stack}",
        otherwise="trainyard logs --stack {stack}",
        by_rehearsal=True,
    ),
    "drift": Word(
        does="Let Pulumi read every object of a stack, and print those that somebody changed or deleted.",
        module="trainyard.operations.status.drift",
        options=("--json",),
        example="drift dev --live",
        fails="an object is not as the last update left it, or cannot be read",
        then="{preview}",
    ),
    "logs": Word(
        does="Print the whole logs of all ranks of a job.",
        module="trainyard.operations.runs.logs",
        options=("--rank", "--follow", "--past"),
        argument="job",
        example="logs t5-large --rank 0 --follow",
        fails=f"the job has no logs, or {NO_ANSWER}",
        then="trainyard status {stack}",
        otherwise="trainyard status {stack}",
    ),
    "runs": Word(
        does="Print each run: who, what, when, how long, dollars, outcome.",
        module="trainyard.operations.runs.runs",
        options=("--json", "--html"),
        reads="the runs of {stack}",
        example="runs dev --json",
        fails=NO_ANSWER,
        then="trainyard spent {stack}",
        otherwise="trainyard status {stack}",
    ),
    "spent": Word(
        does="Print GPU hours and dollars of each finished run, and of each team.",
        module="trainyard.operations.runs.spent",
        options=("--json",),
        reads="the runs of {stack}",
        example="spent dev",
        fails=NO_ANSWER,
        otherwise="trainyard status {stack}",
    ),
    "nodes": Word(
        does="Print each node: type, system, GPUs, zone, price, who holds it, when it ends.",
        module="trainyard.operations.nodes.nodes",
        options=("--json",),
        example="nodes dev",
        fails=NO_ANSWER,
        then="trainyard watch {stack}",
        otherwise="trainyard status {stack}",
    ),
    "watch": Word(
        does="Show nodes, runs with their ranks, queue, dollars and alerts until ctrl-C.",
        module="trainyard.operations.runs.watch",
        options=("--once", "--json", "--svg", "--every"),
        example="watch dev --once",
        fails=NO_ANSWER,
        otherwise="trainyard status {stack}",
    ),
    "stop": Word(
        does="Name the run of a job, ask, and end it on the cluster.",
        module="trainyard.operations.runs.stop",
        options=("--yes",),
        argument="job",
        needs_with_yes=("job",),  # the only job of the cluster can be that of a team
        example="stop t5-large",
        fails=f"a pod of the job is still there, or {NO_ANSWER}",
        otherwise="trainyard status {stack}",
    ),
    "again": Word(
        does="Increase the run number of a job in the stack file, after a question.",
        module="trainyard.operations.runs.again",
        options=("--yes",),
        argument="job",
        needs=("job",),
        example="again t5-large",
        fails="the number cannot be increased",
        otherwise="trainyard check {stack}",
    ),
    # Images and nodes.
    "image": Word(
        does="Build the image of a folder, push it to ECR, and write its digest into a job.",
        module="trainyard.operations.images.image",
        options=("--from", "--registry", "--yes"),
        argument="job",
        needs=("job", "folder"),
        example="image t5-large --from workloads/deepspeed",
        fails="the image is not built or not pushed",
        otherwise="trainyard check {stack}",
    ),
    "mirror": Word(
        does="List the images that nodes pull, ask, and copy those that artifacts.images lacks.",
        module="trainyard.operations.images.mirror",
        options=("--list", "--charts", "--notebook", "--json", "--yes"),
        example="mirror dev --list",
        fails="a copy is missing at the end, or its image was pushed anew under the same tag",
        then="{preview}",
        otherwise="trainyard check {stack}",
        by_rehearsal=True,
    ),
    "accept": Word(
        does="Judge what the nodes of a pool reach, or ask and write the job that measures it.",
        module="trainyard.operations.nodes.accept",
        options=("--pool", "--nodes", "--image", "--json", "--yes"),
        example="accept dev --pool h100",
        fails=f"a line fails, there are no results yet, or {NO_ANSWER}",
        otherwise="trainyard status {stack}",
    ),
    "shell": Word(
        does="Name the price of a pod on a pool, ask, and open a terminal or run a command there.",
        module="trainyard.operations.nodes.shell",
        options=("--pool", "--image", "--gpus", "--minutes", "--run", "--yes"),
        example='shell dev --pool h100 --run "nvidia-smi"',
        fails="the pod does not start; with --run: as the command ends",
        then="trainyard status {stack}",
        otherwise="trainyard status {stack}",
    ),
    "tensorboard": Word(
        does="Name the price of a pod, ask, and show in TensorBoard what a job has written.",
        module="trainyard.operations.nodes.tensorboard",
        options=("--pool", "--image", "--minutes", "--yes"),
        argument="job",
        example="tensorboard t5-large --stack dev",
        fails="the job has written to no store, or the pod does not start or ends by itself",
        then="trainyard status {stack}",
        otherwise="trainyard status {stack}",
    ),
    "checkpoint": Word(
        does="Name the price of a pod, ask, and print the newest checkpoint of a job that is whole.",
        module="trainyard.operations.nodes.checkpoint",
        options=("--pool", "--image", "--minutes", "--yes"),
        argument="job",
        example="checkpoint t5-large --stack dev",
        fails="no checkpoint is whole, or the pod does not start",
        then="trainyard status {stack}",
        otherwise="trainyard status {stack}",
    ),
    "notebook": Word(
        does="Name the price of a pod on a pool, ask, and open JupyterLab there.",
        module="trainyard.operations.nodes.notebook",
        options=("--pool", "--image", "--gpus", "--minutes", "--yes"),
        example="notebook dev --pool g6e",
        fails="the pod does not start or ends by itself",
        then="trainyard status {stack}",
        otherwise="trainyard status {stack}",
    ),
    "prove": Word(
        does="Try an account, cheapest first and within a limit of dollars, and write what was seen.",
        module="trainyard.operations.prove.prove",
        options=("--at-most-dollars", "--image", "--look-after", "--destroy", "--yes"),
        example="prove --stack prove --live --at-most-dollars 15",
        fails="a step fails, or something is left",
        by_rehearsal=True,
    ),
    # The cluster.
    "kubeconfig": Word(
        does="Write a kubeconfig, and print its path.",
        module="trainyard.operations.reach.kubeconfig",
        example="kubeconfig dev",
        fails="the stack has no cluster",
        then="export KUBECONFIG=$(trainyard kubeconfig {stack})",
        otherwise="trainyard status {stack}",
        by_rehearsal=True,
    ),
    "drain": Word(
        does="List the training jobs on the cluster of a stack, ask, and delete them.",
        module="trainyard.operations.recovery.drain",
        options=("--yes",),
        example="drain dev --live",
        fails=f"a job or a pod is still there, or {NO_ANSWER}",
        then="{destroy}",
        otherwise="trainyard status {stack}",
        by_rehearsal=True,
    ),
    "repair": Word(
        does="List what a killed or failed update leaves behind, ask, and mend it.",
        module="trainyard.operations.recovery.repair",
        options=("--restored", "--yes"),
        example="repair dev --live",
        fails="the state of the stack is not mended",
        then="{up}",
        otherwise="trainyard status {stack}",
        by_rehearsal=True,
    ),
    # The tool itself.
    "completion": Word(
        does="Print the completion of words, options and stacks for bash or zsh.",
        module="trainyard.cli.completion",
        argument="shell",
        needs=("shell",),
        acts=Acts.ON_FILES,
        example="completion bash > ~/.local/share/bash-completion/completions/trainyard",
        fails="the output cannot be written",
    ),
}
"""Every word, in the order of --help."""
