"""A list of words becomes a script that starts the same program with the same words."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rehearsal.kubelet.environment import expand
from trainyard.manifests.document import of_body
from trainyard.migrate.migration import migrate
from trainyard.migrate.result import Migration

VARIABLES = {"ADATA": "/data/a b*", "lower": "it's $5"}
"""Variables of the container."""
BY_V1 = {"PET_NODE_RANK": "1", "PET_MASTER_ADDR": "mine-node-0-0.mine", "PET_MASTER_PORT": "29400"}
"""Variables that the Trainer sets, by which scripts export those of training-operator v1."""
PARTS = [
    "$(ADATA)",
    "$(lower)",
    "$(date)",
    "$$(ADATA)",
    "$",
    "(",
    ")",
    "{",
    "}",
    "a",
    " ",
    "'",
    '"',
]
PARTS += [
    "{a,b}",
    "{000000..000003}",
    "${base.dim}",
    "$5",
    "$HOME",
    "`id`",
    "\\",
    "*",
    "~",
    "\n",
    "=",
]
WORDS = st.lists(st.lists(st.sampled_from(PARTS), max_size=6).map("".join), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a stand-in for torchrun, which prints its words."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "torchrun").write_text("#!/bin/bash\nprintf '%s\\0' \"$@\"\n")
    (folder / "torchrun").chmod(0o755)
    return folder


def migration(*words: str, **container: Any) -> Migration:
    """The result for a PyTorchJob whose container runs torchrun with these words."""
    body = {
        "name": "pytorch",
        "image": "a/b:1",
        "command": ["torchrun", *words],
        "env": [{"name": name, "value": value} for name, value in VARIABLES.items()],
        **container,
    }
    template = {"spec": {"containers": [body]}}
    spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}}
    job = of_body({"kind": "PyTorchJob", "metadata": {"name": "mine"}, "spec": spec})
    return migrate(job)


def script(*words: str, **container: Any) -> str:
    """The script of its entry."""
    return str(migration(*words, **container).entry["script"])


def words_of(text: str, programs: Path) -> list[str]:
    """Words with which the script of an entry starts torchrun in a pod, whose kubelet reads them first."""
    env = {**VARIABLES, **BY_V1, "PET_NNODES": "2", "PATH": f"{programs}:/usr/bin:/bin"}
    shell = ["/bin/bash", "-c", expand(f"set -euo pipefail\n{text}", env)]
    ran = subprocess.run(shell, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (text, ran.stderr)
    return ran.stdout.split("\0")[:-1]


@example(
    words=[
        "--shards=/data/imagenet-{000000..000099}.tar",
        "--stamp=$(date)",
        "model.dim=${base.dim}",
    ]
)
@example(words=["--pattern=$(ADATA)/a?b", "--cost=$5", "$$(ADATA)", "a$$$$b", ""])
@given(words=WORDS)
def test_each_word_reaches_the_program_as_kubernetes_would_hand_it_over(
    words: list[str], programs: Path
) -> None:
    """With other quotes WebDataset's braces became 100 words, and $(date) a program."""
    assert words_of(script(*words), programs) == [expand(word, VARIABLES) for word in words]


def test_variables_of_the_controller_are_the_shell_s(programs: Path) -> None:
    text = script(
        "--rank=$(RANK)", "$(MASTER_ADDR):$(MASTER_PORT)", "$(PYTORCH_JOB_MASTER_SERVICE_HOST)"
    )
    assert "--rank=${RANK} ${MASTER_ADDR}:${MASTER_PORT} ${MASTER_ADDR}\n" in text
    assert words_of(text, programs) == [
        "--rank=1",
        "mine-node-0-0.mine:29400",
        "mine-node-0-0.mine",
    ]


def test_a_variable_of_unknown_origin_stays_a_variable_where_it_is_in_capitals() -> None:
    """envFrom can give the container any."""
    known, unknown = (script("$(DATA)", "$(date)", **more) for more in ({}, {"envFrom": [{}]}))
    assert known.endswith("torchrun '$(DATA)' '$(date)'\n")
    assert unknown.endswith("torchrun \"${DATA}\" '$(date)'\n")


def test_a_text_of_a_shell_stays_the_text_it_is() -> None:
    text = script(command=["bash", "-c", "torchrun {a,b}.py $(ADATA) $(date)"])
    assert text.endswith("torchrun {a,b}.py ${ADATA} $(date)\n")


def test_a_program_that_has_an_option_c_stays_the_program() -> None:
    command = ["/workspace/run.sh", "-c", "configs/llama.yaml", "--nodes", "2"]
    assert script(command=command).endswith("/workspace/run.sh -c configs/llama.yaml --nodes 2\n")


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("--rdzv_endpoint=mine-master-0:1", ["--rdzv_endpoint=mine-node-0-0.mine:1"]),
        ("--rdzv_endpoint='mine-worker-0:1'", ["--rdzv_endpoint=mine-node-0-0.mine:1"]),
        ('"tcp://mine-master-0.ml.svc.cluster.local:1"', ["tcp://mine-node-0-0.mine:1"]),
        ("not-mine-master-0 /logs/mine-master-0 mine-master-0.log", None),
        ("mine-worker-1 mine-master-01", None),
    ],
)
def test_the_pod_at_which_a_job_of_v1_meets_is_that_of_the_trainer(
    given: str, made: list[str] | None, programs: Path
) -> None:
    for command in (["bash", "-c", f"torchrun {given}"], ["torchrun", *shlex.split(given)]):
        assert words_of(script(command=command), programs) == (made or given.split())
    text = script(
        command=["bash", "-c", f"cat > a <<'E'\nmaster: mine-master-0\nE\ntorchrun {given}"]
    )
    assert "master: $(PET_MASTER_ADDR)\n" in text, "bash replaces nothing there, Kubernetes does"


def test_the_sentence_about_that_pod_names_what_the_script_has() -> None:
    made = migration(
        command=["bash", "-c", "# don't\ntorchrun --rdzv_endpoint=mine-master-0:1 a.py"]
    )
    assert "--rdzv_endpoint=$(PET_MASTER_ADDR):1" in made.entry["script"]
    assert any("mine-master-0 is now $(PET_MASTER_ADDR), " in each for each in made.changed)


def test_a_variable_with_that_pod_names_the_pod_of_the_trainer() -> None:
    variables = [{"name": "RDZV", "value": "tcp://mine-master-0:29500"}]
    made = migration(command=["torchrun", "--rdzv_endpoint=mine-master-0:1"], env=variables)
    assert made.entry["env"] == {"RDZV": "tcp://mine-node-0-0.mine:29500"}
    said = "mine-node-0-0.mine, since Trainer v2 makes no host of the other name"
    assert f"env.RDZV: mine-master-0 is now {said}" in " ".join(made.changed)
    said = "${PET_MASTER_ADDR}, since Trainer v2 makes no host of the other name"
    assert f"script: mine-master-0 is now {said}" in made.changed


def test_a_script_that_reads_a_variable_of_v1_to_set_it_gets_its_value(programs: Path) -> None:
    lines = [
        *("export MASTER_ADDR=$MASTER_ADDR", "MASTER_PORT=${MASTER_PORT:-1}", "NODE_RANK=$RANK"),
        *("WORLD_SIZE=$((WORLD_SIZE * 8))", "RANK=$((RANK + 1))"),
        "torchrun $MASTER_ADDR $MASTER_PORT $NODE_RANK $WORLD_SIZE $RANK",
    ]
    text = script(command=["bash", "-c", "\n".join(lines)])
    assert words_of(text, programs) == ["mine-node-0-0.mine", "29400", "1", "16", "2"]


def test_a_script_that_sets_a_variable_of_v1_itself_keeps_its_own() -> None:
    text = "RANK=$PET_NODE_RANK; WORLD_SIZE=16\ntorchrun --node_rank=$RANK --n=$WORLD_SIZE\n"
    assert script(command=["bash", "-c", text]) == text


@pytest.mark.parametrize(
    "shell", [["/bin/bash", "-lc"], ["bash", "--login", "-c"], ["bash", "-ic"]]
)
def test_a_profile_of_the_image_that_is_read_no_more_is_said(shell: list[str]) -> None:
    """Its PATH may have conda, without which bash finds no torchrun."""
    for container in (
        {"command": [*shell, "torchrun a.py"]},
        {"command": shell, "args": ["torchrun a.py"]},
        {"command": shell[:1], "args": [*shell[1:], "torchrun a.py"]},
    ):
        made = migration(**container)
        assert made.entry["script"] == "torchrun a.py\n"
        [said] = [each for each in made.changed if "profile" in each]
        assert f": {' '.join(shell[1:])}: bash reads no profile of the image" in said
        assert said.endswith(f"write the script as {' '.join(shell)} '…'")


def test_other_options_of_a_shell_are_said_to_be_gone() -> None:
    for options in (["-exc"], ["-euxo", "pipefail", "-c"], ["-O", "extglob", "-c"]):
        made = migration(command=["bash", *options, "torchrun a.py"])
        assert made.entry["script"] == "torchrun a.py\n"
        [said] = [each for each in made.changed if "options of the shell" in each]
        assert f": {' '.join(options)}: " in said and said.endswith("set -euo pipefail")
    assert not any("options" in each for each in migration(command=["sh", "-c", "a"]).changed)
