"""A script's starts of torchrun are read as the shell and torchrun read them."""

from __future__ import annotations

import pytest

from trainyard.derive.scripts import Launch, launches, saved_in, saved_in_the_container, script_of
from trainyard.settings.reading.placeholders import placeholders


def one(script: str) -> Launch:
    [launch] = launches(script)
    return launch


@pytest.mark.parametrize(
    "script",
    [
        (
            "torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=a:1 t.py"
            " --nnodes 9"
        ),
        (
            "exec torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint a:1 -m"
            " t --rdzv_endpoint=b"
        ),
        (
            "A=1 python3 -m torch.distributed.run --nnodes 2 \\\n  --nproc_per_node 8 \\\n"
            " --rdzv_backend=c10d --rdzv_endpoint a:1 t.py"
        ),
        (
            "# torchrun --standalone x.py\ncd /app && /opt/conda/bin/torchrun --no-python --nnodes"
            " 2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=a:1 t.sh; echo torchrun"
        ),
    ],
)
def test_options_count_until_the_program(script: str) -> None:
    launch = one(script)
    assert (launch.nodes, launch.ranks, launch.backend, launch.endpoint) == (
        "2",
        "8",
        "c10d",
        "a:1",
    )
    assert not launch.is_standalone


@pytest.mark.parametrize(
    ("script", "alone"),
    [
        ("torchrun t.py", False),
        ("torchrun --standalone t.py", True),
        ("torchrun --rdzv_backend=c10d t.py", True),
        ("torchrun --rdzv_backend=static t.py", False),
        ("torchrun --master_addr=$A t.py", False),
        ("torchrun --rdzv_endpoint=localhost:1 t.py", True),
        ("torchrun --master-addr 127.0.0.1 t.py", True),
        ("torchrun --rdzv_backend=c10d $MORE t.py", False),
        ("torchrun t.py --standalone", False),
    ],
)
def test_a_start_is_alone_where_each_node_would_wait_at_its_own_localhost(
    script: str, alone: bool
) -> None:
    assert one(script).is_standalone == alone


def test_every_start_knows_its_line_and_where_options_go() -> None:
    script = "set -e\n  # torchrun no.py\ntorchrun a.py && \\\n  torchrun b.py | tee log\n"
    first, second = launches(script)
    assert (first.line, second.line, second.text) == (3, 4, "torchrun b.py")
    assert script[second.at :].startswith(" b.py")


@pytest.mark.parametrize(
    "script", ["", "python t.py", "pip install torchrun-x", "# torchrun t.py", "torchrun_a t.py"]
)
def test_what_is_no_start_is_none(script: str) -> None:
    assert not launches(script)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (("/bin/bash", "-c", "torchrun a.py"), "torchrun a.py"),
        (("torchrun", "a.py"), "torchrun a.py"),
        (("/bin/sh", "-c", 'A=1\nexec "$@"', "sh", "torchrun", "a.py"), "torchrun a.py"),
        (("/bin/sh", "-c", 'exec "$@"', "sh", "/bin/bash", "-c", "python b.py"), "python b.py"),
        (("/bin/sh", "-c", 'exec "$@"'), 'exec "$@"'),
        (("/workspace/run.sh", "-c", "a.yaml"), "/workspace/run.sh -c a.yaml"),
        (("bash", "run.sh", "-c", "a.yaml"), "bash run.sh -c a.yaml"),
        (("bash", "-x", "run.sh", "-c", "a.yaml"), "bash -x run.sh -c a.yaml"),
        (("sh", "-", "run.sh", "-c", "a.yaml"), "sh - run.sh -c a.yaml"),
        (("bash", "-euo", "pipefail", "-c", "torchrun a.py"), "torchrun a.py"),
        (("bash", "--login", "-O", "extglob", "+x", "-c", "torchrun a.py"), "torchrun a.py"),
        (("bash", "--rcfile", "/a", "-ceuo", "pipefail", "torchrun a.py"), "torchrun a.py"),
        (("/bin/ash", "-c", "-e", "--", "torchrun a.py"), "torchrun a.py"),
        (("zsh", "-lc", "torchrun a.py"), "torchrun a.py"),
        (("bash", "-o"), "bash -o"),
        (("bash", "-c"), "bash -c"),
    ],
)
def test_a_shell_that_hands_on_is_read_as_what_it_hands_on_to(
    command: tuple[str, ...], text: str
) -> None:
    assert script_of(command) == text


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("git clone https://github.com/<GIT_REPO2>", ["<GIT_REPO2>"]),
        ("cd <your_repo>; cd <your-repo>", ["<your_repo>", "<your-repo>"]),
        ("cd <Your Folder> && cd <Your Folder>", ["<Your Folder>"]),
        ("export TOKEN=hf_<YOUR_TOKEN>", ["<YOUR_TOKEN>"]),
        ("A=CHANGE_ME B=REPLACEME train", ["CHANGE_ME", "REPLACEME"]),
    ],
)
def test_what_nobody_filled_in_is_found(script: str, found: list[str]) -> None:
    assert placeholders(script) == found


@pytest.mark.parametrize(
    "script",
    [
        "cat <<EOF>/tmp/a\nx\nEOF",
        "python - <<EOF\nif a < b and c > d: pass\nEOF",
        "python3 -c 'print(1 <MAX_LEN and 3> 2)'",
        "cat <<EOF > k.cu\n#include <x.h>\n#include <CUB>\nstd::vector<T> a;\nEOF",
        "sort <IN >OUT",
        "diff <(ls A) <(ls B)",
        "torchrun t.py --pad_token '<PAD>' --stop '<EOS>'",
        "# torchrun train.py <CONFIG>\ntorchrun t.py",
        "[ $# = 1 ] || { echo 'usage: run.sh <CONFIG>'; exit 1; }",
        "if [ $TOKEN = CHANGE_ME ]; then exit 1; fi",
        "sed -i s/CHANGE_ME/$TOKEN/ config.yaml",
        "grep -q '<TOKEN>' config.yaml && exit 1",
        "python -c \"t = t.replace('<TOKEN>', token)\"",
        "export TIMEOUT_CHANGE_METRIC=1",
        "echo {{ a }} $A",
    ],
)
def test_what_a_script_means_so_is_no_placeholder(script: str) -> None:
    assert placeholders(script) == []


def test_a_relative_path_in_which_a_script_saves_is_found_also_without_a_dot() -> None:
    for option in ("--output-dir ckpt", "--output_dir=./ckpt/a", "--save_dir ../ckpt;"):
        assert len(saved_in_the_container(f"torchrun t.py {option}")) == 1
    for option in (
        *("--output_dir $OUT", "--output_dir ${OUT}", '--output_dir "$OUT"', "--output_dir /ckpt"),
        *(
            "--output_dir s3://a/b",
            "--output_dir $(OUT)",
            "--ckpt_path model.pt",
            "--output_dir --lr 1",
        ),
    ):
        assert saved_in_the_container(f"torchrun t.py {option}") == []


def test_a_path_in_which_a_script_saves_is_found_by_the_names_that_people_give_its_option() -> None:
    for option in (
        "--out",
        "--outdir",
        "--out_dir",
        "--output",
        "--results-dir",
        "--work-dir",
        "--exp_dir",
    ):
        assert saved_in(f"torchrun t.py {option} /data/out") == ["/data/out"]
    assert saved_in("t.py --default_root_dir=/data/out") == ["/data/out"], "Lightning"
    for option in ("--model_dir /data/m", "--out /tmp/run", "--outliers /a", "--data-dir /data"):
        assert saved_in(f"torchrun t.py {option}") == []
