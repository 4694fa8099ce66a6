"""Programs that only a real GPU can try: the samples, the measurement of `trainyard accept`, and 25 that fail.

It needs one GPU, torch, Triton, and root for two small file systems; no network, and nothing of `.venv`. Two nodes
are two torchruns, which NCCL takes for two hosts (NCCL_HOSTID) and connects by TCP; they share the GPU. It takes 4
minutes and exits with 1 where a sample that was stopped ends with another loss than the one that was not. FOLDER
gets logs.jsonl: name, node, exit code and log of each program.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
WORKLOADS = HERE.parents[1] / "workloads"
LIMIT_SECONDS = 75
"""The time of a program. It is killed then, and its log is kept."""
AT_ONCE = 8
"""Programs that share the GPU."""
STEPS = {
    "ddp": ["--steps=400", "--steps-per-checkpoint=100"],
    "fsdp": ["--steps=160", "--steps-per-checkpoint=40"],
    "full_finetune": ["--bf16=True", "--num_train_epochs=2", "--save_steps=10"],
}
"""Sample → its arguments."""
LOSS = re.compile(r"^rank 0 of \d+: final loss ([\d.]+)$", re.MULTILINE)

Started = Sequence["subprocess.Popen[str]"]


class Runs:
    """Programs that run under torchrun, and the file with their logs."""

    def __init__(self, folder: Path, work: Path) -> None:
        self.work = work
        self._out, self._lock, self._port = (
            (folder / "logs.jsonl").open("w"),
            threading.Lock(),
            29600,
        )

    def run(
        self,
        name: str,
        *command: str,
        nodes: int = 1,
        ranks: int = 1,
        restarts: int = 0,
        small: tuple[str, str] | None = None,
        then: Callable[[Started], None] | None = None,
        **variables: str,
    ) -> str:
        """The log of node 0. `small`: a folder that is a file system of its own, and its size. `then`: is done
        while the program runs."""
        with self._lock:
            self._port += 1
            port = self._port
        launch = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={nodes}"]
        launch += [f"--nproc_per_node={ranks}", f"--max_restarts={restarts}", f"--rdzv_id={name}"]
        launch += ["--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{port}", *command]
        if small:
            mount = f'mount -t tmpfs -o size={small[1]} tmpfs {small[0]} && exec "$@"'
            launch = ["unshare", "-m", "bash", "-c", mount, "bash", *launch]
        files = [self.work / f"{name}.{node}.log" for node in range(nodes)]
        began, started = time.monotonic(), list[subprocess.Popen[str]]()
        for node, file in enumerate(files):
            ours = {"HOSTNAME": f"node-{node}", "OMP_NUM_THREADS": "2", "PYTHONUNBUFFERED": "1"}
            ours |= {"NCCL_HOSTID": f"node-{node}"} if nodes > 1 else {}
            with file.open("w") as log:
                started.append(
                    subprocess.Popen(
                        launch,
                        env=os.environ | ours | variables,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        text=True,
                        start_new_session=True,
                    )
                )
        if then:
            then(started)
        self._wait(started, began + LIMIT_SECONDS)
        self._keep(name, started, files, time.monotonic() - began)
        return files[0].read_text(errors="replace")

    def _wait(self, started: Started, deadline: float) -> None:
        for one in started:
            try:
                one.wait(max(1.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(one.pid, signal.SIGKILL)
                one.wait()

    def _keep(self, name: str, started: Started, files: Sequence[Path], took: float) -> None:
        with self._lock:
            for node, (one, file) in enumerate(zip(started, files, strict=True)):
                row = {
                    "name": name,
                    "node": node,
                    "code": one.returncode,
                    "seconds": round(took, 1),
                }
                log = file.read_text(errors="replace")
                self._out.write(json.dumps(row | {"log": log}) + "\n")
                self._out.flush()
                print(f"{name}, node {node}: exit code {one.returncode}, {took:.1f} s", flush=True)


def sample(runs: Runs, name: str, nodes: int) -> list[str]:
    """The final losses of a sample that nobody disturbs, and of one that is stopped and goes on."""
    place = runs.work / f"{name}-{nodes}"
    shutil.copytree(WORKLOADS / name, place)
    shutil.copy(WORKLOADS / "checkpoints.py", place)
    command = [str(place / "train.py"), *STEPS[name]]
    if name == "full_finetune":
        command += [f"--dataset_dir={runs.work}/tokens", f"--output_dir={place}/final"]
    whole, stopped = place / "whole", place / "stopped"

    def stop(started: Started) -> None:
        while not list(stopped.glob("step-*.pt")) and started[0].poll() is None:
            time.sleep(0.05)
        for one in started:
            one.send_signal(signal.SIGTERM)

    logs = [runs.run(f"{name}-{nodes}", *command, nodes=nodes, CHECKPOINT_DIR=str(whole))]
    runs.run(
        f"{name}-{nodes}-stopped", *command, nodes=nodes, then=stop, CHECKPOINT_DIR=str(stopped)
    )
    logs += [runs.run(f"{name}-{nodes}-on", *command, nodes=nodes, CHECKPOINT_DIR=str(stopped))]
    return [found for log in logs for found in LOSS.findall(log)]


def samples(runs: Runs) -> bool:
    """Print the losses of all samples. Returns whether each pair is the same."""
    import torch

    (runs.work / "tokens").mkdir()
    tokens = torch.randint(256, (20000,), generator=torch.Generator().manual_seed(1))
    torch.save(tokens, runs.work / "tokens/a.pt")
    wanted = [(name, nodes) for name in STEPS for nodes in (1, 2)]
    with ThreadPoolExecutor(len(wanted)) as pool:
        found = list(pool.map(lambda one: sample(runs, *one), wanted))
    for (name, nodes), losses in zip(wanted, found, strict=True):
        print(f"{name:14} {nodes} node(s): final loss {' and '.join(losses)}")
    return all(len(losses) == 2 and len({*losses}) == 1 for losses in found)


def accept(runs: Runs, nodes: int) -> None:
    place = runs.work / f"accept-{nodes}"
    (place / "store").mkdir(parents=True)
    log = runs.run(
        f"accept-{nodes}",
        str(HERE / "accept.py"),
        f"--store=scratch={place}/store",
        nodes=nodes,
        restarts=1,
        CHECKPOINT_DIR=str(place / "run"),
    )
    print("\n".join(line for line in log.split("\n") if line.startswith("ACCEPT")))


def failures(runs: Runs) -> None:
    """Run all programs that fail."""
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0"}  # the programs read them where they are imported
    from benchmarks.on_a_gpu import failing

    def fail(program: Callable[[], None], nodes: int = 1, ranks: int = 1) -> None:
        name, small = program.__name__, failing.SMALL_FOLDERS.get(program)
        runs.run(name, str(HERE / "failing.py"), name, nodes=nodes, ranks=ranks, small=small)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for program in (*failing.ONE_NODE, *failing.SMALL_FOLDERS):
            pool.submit(fail, program)
        for program in failing.TWO_NODES:
            pool.submit(fail, program, nodes=2)
        for program in failing.TWO_RANKS:
            pool.submit(fail, program, ranks=2)
        wrong = {"NCCL_SOCKET_IFNAME": "eth7"}
        pool.submit(runs.run, "no_interface", str(HERE / "failing.py"), "two_types", **wrong)
    for program in failing.ALONE:
        fail(program)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.on_a_gpu")
    parser.add_argument("folder", type=Path, help="where logs.jsonl is written")
    folder = parser.parse_args(words).folder
    with tempfile.TemporaryDirectory() as work:
        runs = Runs(folder, Path(work))
        accept(runs, 1)
        same = samples(runs)
        accept(runs, 2)
        failures(runs)
    print("each sample went on to the same loss" if same else "a sample went on to another loss")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
