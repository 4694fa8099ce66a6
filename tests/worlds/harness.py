"""Doing things to a running rehearsal and looking at what comes of it: what the end-to-end test and
the soak share."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import boto3
import yaml

from rehearsal import paths, processes
from trainyard.objects.iam.policies import document
from trainyard.objects.programs.history import APP as HISTORY
from trainyard.objects.programs.history import RECORD
from trainyard.operations.reach.kubectl import Login, login
from trainyard.operations.reach.place import KIND

Object = dict[str, Any]

VICTIMS: dict[str, tuple[str, ...]] = {
    "engine": ("bin/pulumi",),
    "aws plugin": ("rehearsal.providers.aws",),
    "eks plugin": ("rehearsal.providers.eks", "/resource-eks-"),
    "kubernetes plugin": ("rehearsal.providers.kubernetes", "/resource-kubernetes-"),
    "Karpenter": ("/controller",),
    "Trainer and JobSet": ("/manager",),
}
"""Who may be killed → what its command line contains: our plugin's, or that of the released one."""

OF_A_WORLD = ("fault", "processes")
"""Words that know no stack."""


@dataclass(frozen=True, kw_only=True)
class Harness:
    """One rehearsal with a state folder of its own; every command is the one a person types."""

    state: Path
    log: Path
    checkout: Path = paths.HOME
    """Where the program and its stack files are: a copy may have other ones."""
    stack: str = "dev"
    """The environment that `shell` speaks to."""
    sessions: dict[tuple[float, ...], Login] = field(
        default_factory=dict, repr=False, compare=False
    )
    """What `shell` works with, by what would make it another: one at most."""
    started: list[subprocess.Popen[str]] = field(default_factory=list, repr=False, compare=False)
    """Every command that start() began."""

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"TRAINYARD_REHEARSAL": str(self.state)}

    def said(self, word: str) -> str:
        """The log since a command with this word began the last time."""
        _, *later = re.split(rf"^\$ \w+ {word}\b", self.log.read_text(), flags=re.MULTILINE)
        assert later, f"no command {word} has begun"
        return later[-1]

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`python -m development …`, or of the rehearsal, its output appended to the log."""
        return self._start("rehearsal" if words[0] in OF_A_WORLD else "development", *words)

    def _start(self, module: str, *words: str) -> subprocess.Popen[str]:
        with self.log.open("a") as log:
            log.write(f"\n$ {module} {' '.join(words)}\n")
            log.flush()
            command = subprocess.Popen(
                [sys.executable, "-m", module, *words],
                cwd=self.checkout,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                preexec_fn=_hears_interrupts,
            )
        self.started.append(command)
        return command

    def stop(self) -> None:
        """Kill each command that still runs, so that none of them is in the way of the next."""
        for command in self.started:
            command.kill()
            command.wait()

    def do(self, *words: str) -> int:
        """The exit status of start()."""
        return self.start(*words).wait()

    def begin(self) -> int:
        """The exit status of a rehearsal that begins without a stack, as for somebody who needs something in the
        account first."""
        return self._start("rehearsal", "up").wait()

    def tool(self, *words: str) -> int:
        """The exit status of `trainyard … --rehearsal`."""
        return self._start("trainyard", *words, "--rehearsal").wait()

    def shell(self, command: str, *, check: bool = True) -> str:
        """A command line in the shell that `make env` sets up."""
        done = self._bash(command, self._session())
        if check and done.returncode:
            raise RuntimeError(f"{command}: {done.stderr or done.stdout}")
        return done.stdout + ("" if check else done.stderr)

    def aws(self, service: str) -> Any:
        """The SDK's client of a service, as the shell's user."""
        env = self._session()
        return boto3.client(
            service,
            endpoint_url=env["AWS_ENDPOINT_URL"],
            region_name=env["AWS_REGION"],
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        )

    def _session(self) -> Mapping[str, str]:
        """Set up once, and logged in to the cluster once: a test that looks every second would else
        do little but ask who it is."""
        files = (self.state / "world.json", self.state / f"kubeconfig-{self.stack}")
        key = tuple(file.stat().st_mtime if file.exists() else 0 for file in files)
        if key not in self.sessions:
            exports = (
                f'eval "$({sys.executable} -m development env --stack {self.stack})"; env --null'
            )
            said = self._bash(exports, self.environment).stdout
            made = dict(variable.split("=", 1) for variable in said.split("\0") if variable)
            self.sessions.clear()
            self.sessions[key] = login(made, self.state)
        return self.sessions[key]()

    def _bash(self, line: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/bash", "-c", line],
            cwd=self.checkout,
            env=environment,
            capture_output=True,
            text=True,
        )

    def get(self, what: str) -> Object:
        """`kubectl get`, parsed."""
        return json.loads(self.shell(f"kubectl get {what} --output json"))

    def inventory(self) -> list[Object]:
        """Everything in the account that costs money or is in somebody's way."""
        now = json.loads((self.state / "world.json").read_text())
        header = f"Authorization: Bearer {now['world_secret']}"
        return json.loads(self.shell(f'curl -s -H "{header}" $AWS_ENDPOINT_URL/_world/inventory'))

    def apply(self, obj: Object) -> None:
        """`kubectl apply` of an object, in whichever version it was read."""
        meta = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        self.shell(
            f"kubectl apply --filename - <<'EOF'\n{json.dumps(obj | {'metadata': meta})}\nEOF"
        )

    def condition(self, job: str, namespace: str = "training") -> str:
        """Complete, Failed, or nothing while the job runs."""
        found = (
            self.get(f"{KIND} {job} --namespace {namespace}")
            .get("status", {})
            .get("conditions", [])
        )
        return next((c["type"] for c in found if c["status"] == "True"), "")

    def recorded(self, job: str) -> bool:
        """Whether the history has the end of the job. What it said before that is of an earlier
        moment."""
        kept = self.get(f"configmaps --namespace {HISTORY} --selector {RECORD}=run")["items"]
        return any(
            each["data"]["job"].endswith(f"/{job}") and each["data"]["ended"] for each in kept
        )

    def copy_of(
        self, job: str, name: str, *, script: Callable[[str], str] = str, **env: str
    ) -> Object:
        """A new run like the stack's job, under another name. `script` edits the command, `env_…`
        adds variables."""
        obj = self.get(f"{KIND} {job} --namespace training")
        trainer = obj["spec"]["trainer"]
        trainer["command"][-1] = script(trainer["command"][-1])
        values = {v["name"]: v["value"] for v in trainer["env"]} | {
            k.removeprefix("env_"): v for k, v in env.items()
        }
        trainer["env"] = [{"name": name, "value": value} for name, value in values.items()]
        for mount in obj["spec"]["podTemplateOverrides"][0]["spec"]["containers"][0][
            "volumeMounts"
        ]:
            if "subPath" in mount:
                mount["subPath"] = name
        return {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "metadata": {"name": name, "namespace": "training"},
            "spec": obj["spec"],
        }

    def processes(self, *parts: str) -> list[int]:
        """Process ids of this rehearsal, in its world and around it, whose command line contains one
        of `parts`."""
        keeper = processes.recorded(self.state / "keeper")
        ours = {
            *processes.marked(f"TRAINYARD_REHEARSAL={self.state}"),
            *(processes.processes_in_namespace(keeper) if keeper else []),
        }
        said = {pid: " ".join(processes.command(pid)) for pid in ours}
        return [pid for pid, command in said.items() if any(part in command for part in parts)]

    def kill(self, *parts: str) -> int:
        """SIGKILL to all of them; how many there were."""
        victims = self.processes(*parts)
        processes.kill(victims)
        return len(victims)

    def gpu_instances(self) -> list[str]:
        """Instances that Karpenter launched and that run."""
        return self.shell(
            "aws ec2 describe-instances --filters Name=tag-key,Values=karpenter.sh/nodepool"
            " Name=instance-state-name,Values=running --query"
            " 'Reservations[].Instances[].InstanceId' --output text",
            check=False,
        ).split()


def _hears_interrupts() -> None:
    """A worker of pytest-xdist ignores them, and a process of its own would inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def rehearsing(
    stack: str = "dev", files: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Harness]:
    """A copy of the checkout with these files in it, path → text, and a world of its own that ends
    with it; logs stay. Short paths, since Unix sockets want them."""
    folder = Path(tempfile.mkdtemp(prefix="trainyard-", dir="/tmp"))
    harness = Harness(
        state=folder / "s", log=folder / "log", checkout=copied_checkout(folder / "c"), stack=stack
    )
    for name, text in files.items():
        (harness.checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (harness.checkout / name).write_text(text)
    try:
        yield harness
    finally:
        harness.stop()
        harness.do("down", "--force")
        shutil.rmtree(harness.checkout)


def with_l4(max_nodes: int = 2, **settings: Any) -> Object:
    """The stack file of an environment with one pool of small GPU nodes. `settings`: more of it."""
    return {
        "aws:region": "us-east-2",
        "trainyard:environment": {
            "zone": "us-east-2a",
            "pools": {"l4": {"instance_types": ["g6.12xlarge"], "max_nodes": max_nodes}},
            "cluster": {
                "version": "1.35",
                "endpoint": "public-and-private",
                "public_access_cidrs": ["203.0.113.7/32"],
            },
            "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
            **settings,
        },
    }


@contextmanager
def rehearsing_teams(
    stack: str,
    config: Object,
    *,
    later: Sequence[str] = ("teams",),
    files: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Harness]:
    """`rehearsing`, with the environment of `config` up. Its settings of `later` come in a second
    `up`: the account lives as long as the world, and the roles of teams, which have their names, must
    be there before the teams."""
    file, settings = f"Pulumi.{stack}.yaml", config["trainyard:environment"]
    first = {key: value for key, value in settings.items() if key not in later}
    before = yaml.safe_dump({"config": {**config, "trainyard:environment": first}})
    with rehearsing(stack, {**files, file: before}) as made:
        assert made.do("up", "--stack", stack) == 0, made.log.read_text()
        owner = {"AWS": "arn:aws:iam::123456789012:root"}
        trust = json.dumps(document({"Principal": owner, "Action": ["sts:AssumeRole"]}))
        for team in settings["teams"]:
            made.shell(
                f"aws iam create-role --role-name {team} --assume-role-policy-document '{trust}'"
            )
        (made.checkout / file).write_text(yaml.safe_dump({"config": config}))
        assert made.do("up", "--stack", stack) == 0, made.log.read_text()
        yield made


def copied_checkout(folder: Path) -> Path:
    """A copy of what the program and the rehearsal are made of, whose stack files may be
    changed."""
    left_out = (".git", ".venv", ".rehearsal", ".hypothesis", "__pycache__", "tests", "benchmarks")
    shutil.copytree(paths.HOME, folder, ignore=shutil.ignore_patterns(*left_out))
    (folder / ".venv").symlink_to(sys.prefix)  # Pulumi.yaml names it
    return folder
