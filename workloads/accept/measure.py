"""What the nodes of a job reach: devices, matrix products, all-reduce, storage, a restart.

    torchrun --max_restarts=3 measure.py --store=scratch=/stores/scratch

Run by torchrun with the c10d rendezvous, on GPUs (nccl) or without (gloo). It needs torch and the
standard library only. It measures and judges nothing: `make accept` reads its lines in the log and
compares them with the plan. CHECKPOINT_DIR names a folder of this run on shared storage, beside
those of other runs. There it saves a checkpoint, kills its last rank, resumes in the restarted
ranks, and keeps its results.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

RESULT, BEFORE, END = "ACCEPT ", "ACCEPT-BEFORE ", "ACCEPT-END "
"""How lines of rank 0 begin: a result, a result of the run before, and the last line."""
MIB = 2**20
SIZES = {"cuda": [2**20, 2**24, 2**27, 2**30, 2**31, 2**34], "cpu": [2**16, 2**20, 2**23]}
"""Bytes of an all-reduce. The largest needs a fifth of a GPU's memory at most, or is left out."""
PAIR_BYTES = {"cuda": 2**28, "cpu": 2**20}
MATRIX = {"cuda": (8192, torch.bfloat16), "cpu": (512, torch.float32)}
"""Rows and columns of the matrices that are multiplied, and their type."""
SECONDS = {"cuda": 30.0, "cpu": 2.0}
"""How long matrices are multiplied, and a store is written and read."""
TURNS, WARM_UP = 20, 5
WRITERS = {"cuda": 8, "cpu": 2}
"""Threads of a node that write, each into a file of its own."""
STORED_AT_MOST = {"cuda": 4096 * MIB, "cpu": 64 * MIB}
"""Bytes of such a file."""
CHECKPOINT = {"cuda": 2**30, "cpu": 2**22}
"""Bytes of the checkpoint of a rank."""
RESTART_SECONDS = 900
"""A restart that takes longer has failed. What it left is older then, and of no use."""
PROGRESS, RESULTS = "progress.json", "results.json"
HEALTH = {
    "uncorrected ECC errors": ("gpu", "ecc.errors.uncorrected.volatile.total"),
    "rows waiting for remapping": ("remapped-rows", "remapped_rows.pending"),
    "rows that cannot be remapped": ("remapped-rows", "remapped_rows.failure"),
}
"""Line → query of nvidia-smi and its field. Fields are numbers, or Yes and No."""
IN_CONTAINER, OF_NODE = Path("/dev/infiniband"), Path("/sys/class/infiniband")
"""The EFA devices that this container may open, and all of the node with their counters."""
MODULES = Path("/sys/module")
"""The kernel's modules, which containers see. Lustre's network over EFA is the module kefalnd; it is in use
as long as the network is there (boot script: trainyard/objects/jobs/lnet.py)."""
EFA_SENT = ("tx_bytes", "rdma_write_bytes")
"""Counters of an EFA device of what it sent."""
NCCL_SAYS = Path(tempfile.gettempdir()) / "nccl"
"""Where each process's NCCL writes what network it takes: with a dot and the process's number behind."""
PROVIDER = re.compile(r"NET/OFI Selected Provider is ([\w-]+)", re.I)
"""The line of aws-ofi-nccl (nccl_ofi_net.c). Releases write it with and without capital letters."""
TCP = "Using network Socket"
"""The line of NCCL where it takes no other network."""

Measure = dict[str, Any]


def measure(line: str, value: float, unit: str, node: str = "", of: str = "") -> Measure:
    """One result. `node`: the host, empty for the whole gang. `of`: a size or a store."""
    return {"line": line, "of": of, "node": node, "value": value, "unit": unit}


class Gang:
    """The ranks of the job and the nodes that they are on. All of its methods are called by all
    ranks, at the same points."""

    def __init__(self) -> None:
        began, local = time.monotonic(), int(os.environ["LOCAL_RANK"])
        self.kind = "cuda" if torch.cuda.is_available() else "cpu"
        self.device = torch.device("cuda", local) if self.kind == "cuda" else torch.device("cpu")
        if self.kind == "cuda":
            torch.cuda.set_device(self.device)
        os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
        os.environ["NCCL_DEBUG_FILE"] = f"{NCCL_SAYS}.%p"
        dist.init_process_group("nccl" if self.kind == "cuda" else "gloo")
        self.rank, self.ranks, self.first = dist.get_rank(), dist.get_world_size(), local == 0
        self.memory = (
            torch.cuda.get_device_properties(self.device).total_memory
            if self.kind == "cuda"
            else None
        )
        host = os.environ.get("HOSTNAME") or socket.gethostname()
        on: dict[int, list[int]] = {}
        names: dict[int, str] = {}
        for rank, (group, name) in enumerate(self.gathered((int(os.environ["GROUP_RANK"]), host))):
            on.setdefault(group, []).append(rank)
            names[group] = name
        self.nodes, self.hosts = [*on.values()], [names[group] for group in on]
        self.node = next(n for n, ranks in enumerate(self.nodes) if self.rank in ranks)
        self.met_after = max(self.gathered(time.monotonic() - began))

    def gathered(self, mine: Any) -> list[Any]:
        """What each rank has, by rank."""
        found: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(found, mine)
        return found

    def agreed(self, mine: Any) -> Any:
        """What rank 0 has."""
        found = [mine]
        dist.broadcast_object_list(found, device=self.device)
        return found[0]

    def wait_for_device(self) -> None:
        if self.kind == "cuda":
            torch.cuda.synchronize()

    def by_node(
        self,
        line: str,
        mine: float | None,
        unit: str,
        pick: Callable[[list[float]], float],
        sound: float | None = None,
    ) -> list[Measure]:
        """One result for each node: what `pick` makes of the values that its ranks know. Nothing for
        nodes whose ranks know none. Nothing either where one rank knows none and all others have the
        value `sound`: of such a node nobody knows whether it is sound."""
        found = self.gathered(mine)
        results = []
        for host, ranks in zip(self.hosts, self.nodes, strict=True):
            known = [found[rank] for rank in ranks if found[rank] is not None]
            if known and (len(known) == len(ranks) or {*known} != {sound}):
                results.append(measure(line, pick(known), unit, node=host))
        return results


def devices(gang: Gang) -> Iterator[Measure]:
    """GPUs, EFA devices that this container has, and what the GPUs count of errors."""
    gpus = torch.cuda.device_count()
    yield from gang.by_node("GPUs", gpus, "GPUs", min)
    efa = len([*IN_CONTAINER.glob("uverbs*")])
    yield from gang.by_node("EFA devices", efa, "devices", min)
    yield from gang.by_node("Lustre over EFA", lustre_over_efa(), "", min)
    for line, (query, field) in HEALTH.items():
        yield from gang.by_node(line, asked(gang, query, field), "", sum, sound=0)


def lustre_over_efa() -> float | None:
    """1 where Lustre's network of this node has EFA, 0 where it has TCP only; None without Lustre."""
    if not (MODULES / "lnet").exists():
        return None
    try:
        return float(int((MODULES / "kefalnd" / "refcnt").read_text()) > 0)
    except (OSError, ValueError):
        return 0.0


def asked(gang: Gang, query: str, field: str) -> float | None:
    """A field of this rank's GPU, from nvidia-smi; None where it has none."""
    if gang.kind != "cuda":
        return None
    words = ("nvidia-smi", f"--id={gang.device.index}", f"--query-{query}={field}")
    try:
        plain = [*words, "--format=csv,noheader,nounits"]
        said = subprocess.check_output(plain, text=True, timeout=60).strip()
        return float({"Yes": "1", "No": "0"}.get(said, said))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def products(gang: Gang) -> Iterator[Measure]:
    """Matrix products of each GPU or process, and the clock under this load."""
    size, kind = MATRIX[gang.kind]
    a, b = (torch.rand(size, size, device=gang.device).to(kind) for _ in range(2))
    dist.barrier()
    speeds, clock, began = [], None, time.monotonic()
    while (now := time.monotonic()) < began + SECONDS[gang.kind]:
        for _ in range(TURNS):
            a @ b
        if clock is None and now > began + SECONDS[gang.kind] / 2:
            for _ in range(50 * TURNS if gang.kind == "cuda" else 0):  # busy while it is asked
                a @ b
            clock = asked(gang, "gpu", "clocks.sm")
            gang.wait_for_device()
            continue
        gang.wait_for_device()
        speeds.append(TURNS * 2 * size**3 / (time.monotonic() - now))
    middle = sorted(speeds)[len(speeds) // 2]
    yield from gang.by_node("matrix product", middle / 1e12, "TFLOPS", min)
    yield from gang.by_node("SM clock", clock, "MHz", min)


def bus_speed(gang: Gang, size: int, ranks: int, group: Any = None) -> float:
    """GB/s of the bus in an all-reduce of so many bytes, as nccl-tests counts: bytes / seconds ×
    2(n−1)/n, of the slowest rank."""
    data = torch.zeros(size // 4, dtype=torch.float32, device=gang.device)
    for _ in range(WARM_UP):
        dist.all_reduce(data, group=group)
    dist.barrier(group)
    gang.wait_for_device()
    began = time.monotonic()
    for _ in range(TURNS):
        dist.all_reduce(data, group=group)
    gang.wait_for_device()
    took = torch.tensor([time.monotonic() - began], device=gang.device)
    dist.all_reduce(took, dist.ReduceOp.MAX, group=group)
    return size * TURNS / took.item() * 2 * (ranks - 1) / ranks / 1e9


def all_reduces(gang: Gang) -> Iterator[Measure]:
    """All-reduce of all ranks by size; which ranks take EFA for it, and of what each node must send,
    the part that its EFA devices sent."""
    room = gang.agreed(gang.memory)
    sizes = [size for size in SIZES[gang.kind] if room is None or 5 * size <= room]
    sent_before = sent()
    for size in sizes:
        yield measure("all-reduce", bus_speed(gang, size, gang.ranks), "GB/s", of=str(size))
    nodes, part = len(gang.nodes), None
    over_efa = takes_efa() if nodes > 1 else None
    yield from gang.by_node("ranks over EFA", over_efa, "ranks", sum, sound=1)
    if nodes > 1 and sent_before is not None:
        # A node that is a leaf of both of NCCL's trees sends the data once, in a ring nearly twice.
        must = sum(sizes) * (TURNS + WARM_UP)
        part = ((sent() or 0) - sent_before) / must
    yield from gang.by_node("sent over EFA", part, "of what it must send", min)


def takes_efa() -> float | None:
    """1 where NCCL of this process sends by EFA, 0 where it sends by another way; None where its log
    does not say."""
    try:
        said = Path(f"{NCCL_SAYS}.{os.getpid()}").read_text(errors="replace")
    except OSError:
        return None
    if providers := PROVIDER.findall(said):
        return float(all(each.startswith("efa") for each in providers))
    return 0.0 if TCP in said else None


def sent() -> int | None:
    """Bytes that the EFA devices of this node have sent; None without EFA devices."""
    folders = [*OF_NODE.glob("*/ports/*/hw_counters")]
    files = [folder / name for folder in folders for name in EFA_SENT]
    return sum(int(file.read_text()) for file in files if file.exists()) if folders else None


def rounds(nodes: int) -> list[list[tuple[int, int]]]:
    """The neighbours of a ring, in rounds in which each node has one partner at most."""
    if nodes == 2:
        return [[(0, 1)]]
    ring = [(n, (n + 1) % nodes) for n in range(nodes)]
    last = [ring[-1]] if nodes % 2 else []
    even = ring[: nodes - len(last)]
    return [found for found in (even[::2], even[1::2], last) if found]


def pairs(gang: Gang) -> Iterator[Measure]:
    """All-reduce of each node with its two neighbours, the faster of both: a slow node makes both
    slow."""
    nodes, mine = len(gang.nodes), 0.0
    if nodes < 2:
        return
    for together in rounds(nodes):
        members = {pair: [*gang.nodes[pair[0]], *gang.nodes[pair[1]]] for pair in together}
        # All ranks make each group, and wait in it for each other: so all groups come first.
        groups = {pair: dist.new_group(ranks) for pair, ranks in members.items()}
        for pair in together:
            if gang.node in pair:
                size = PAIR_BYTES[gang.kind]
                mine = max(mine, bus_speed(gang, size, len(members[pair]), groups[pair]))
        dist.barrier()
    yield from gang.by_node("pair of nodes", mine, "GB/s", min)


def store(gang: Gang, name: str, folder: Path) -> Iterator[Measure]:
    """What all nodes together write to a store, and read of what their neighbours wrote."""
    here = folder / ".accept"
    if gang.first:
        here.mkdir(exist_ok=True)
    for line, act, shift in (("write", written, 0), ("read", was_read, 1)):
        node = (gang.node + shift) % len(gang.nodes)
        dist.barrier()
        size, began = 0, time.monotonic()
        if gang.first:
            size = by_threads(act, here / str(node), gang.kind)
        found = gang.gathered((size, time.monotonic() - began))
        speed = sum(size for size, _ in found) / max(took for size, took in found if size)
        yield measure(line, speed / 1e9, "GB/s", of=name)
    if gang.rank == 0:
        shutil.rmtree(here)


def by_threads(act: Callable[[Path, int, float], int], file: Path, kind: str) -> int:
    """Bytes that the threads of this node wrote or read, each a file of its own."""
    deadline, most = time.monotonic() + SECONDS[kind], STORED_AT_MOST[kind]
    files = [file.with_name(f"{file.name}-{number}") for number in range(WRITERS[kind])]
    with ThreadPoolExecutor(len(files)) as threads:
        return sum(threads.map(act, files, [most] * len(files), [deadline] * len(files)))


def written(path: Path, most: int, deadline: float) -> int:
    """Bytes that a thread wrote until the deadline, on the disk."""
    block, size = os.urandom(4 * MIB), 0
    with path.open("wb", buffering=0) as out:
        while size < most and (time.monotonic() < deadline or not size):
            size += out.write(block)
        os.fsync(out.fileno())
    return size


def was_read(path: Path, most: int, deadline: float) -> int:
    """Bytes that a thread read until the deadline."""
    size = 0
    with path.open("rb", buffering=0) as out:
        os.posix_fadvise(out.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while (time.monotonic() < deadline or not size) and (block := out.read(4 * MIB)):
            size += len(block)
    return size


def digest(data: torch.Tensor) -> str:
    return hashlib.sha256(data.numpy().tobytes()).hexdigest()


def save_and_die(gang: Gang, folder: Path, results: list[Measure]) -> None:
    """A checkpoint of every rank, the results so far, and the end of the last rank. torchrun then
    restarts all ranks: this function does not return."""
    data = torch.rand(
        CHECKPOINT[gang.kind] // 4, generator=torch.Generator().manual_seed(gang.rank)
    )
    dist.barrier()
    began = time.monotonic()
    with (folder / f"rank-{gang.rank}.pt").open("wb") as out:
        torch.save(data, out)
        out.flush()
        os.fsync(out.fileno())
    took = max(gang.gathered(time.monotonic() - began))
    hashes = gang.gathered(digest(data))
    if gang.rank == 0:
        saved = measure("checkpoint", gang.ranks * CHECKPOINT[gang.kind] / took / 1e9, "GB/s")
        state = {"results": [*results, saved], "hashes": hashes, "at": time.time()}
        write(folder / PROGRESS, json.dumps(state))
    dist.barrier()
    if gang.rank == gang.ranks - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(RESTART_SECONDS)
    raise SystemExit("the ranks were not restarted: torchrun needs --max_restarts and c10d")


def resumed(gang: Gang, folder: Path, state: dict[str, Any]) -> list[Measure]:
    """The results of before the restart, and what the ranks read again."""
    same = False
    if gang.rank < len(state["hashes"]):
        data = torch.load(folder / f"rank-{gang.rank}.pt", weights_only=True)
        same = digest(data) == state["hashes"][gang.rank]
    whole = sum(gang.gathered(same))
    took = max(gang.gathered(time.time() - state["at"]))
    return [
        *state["results"],
        measure("resumed ranks", whole, "ranks"),
        measure("restart", took, "s"),
    ]


def write(file: Path, text: str) -> None:
    """Replace a file at once, and for good."""
    fresh = file.with_name(f"{file.name}.new")
    with fresh.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)


def read(file: Path) -> dict[str, Any] | None:
    """What a file of results says; None where it is missing or damaged."""
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def began_with(folder: Path) -> dict[str, Any] | None:
    """What this run has left before its restart."""
    state = read(folder / PROGRESS)
    return state if state and time.time() - state["at"] < RESTART_SECONDS else None


def keep(folder: Path, results: list[Measure]) -> list[Measure]:
    """Write the results, and return the newest of those that other runs have kept beside them."""
    others = [found for file in folder.parent.glob(f"*/{RESULTS}") if (found := read(file))]
    write(folder / RESULTS, json.dumps({"at": time.time(), "results": results}, indent=1))
    for used in [*folder.glob("rank-*.pt"), folder / PROGRESS]:
        used.unlink()
    return max(others, key=lambda found: found["at"], default={"results": []})["results"]


def measured(gang: Gang, stores: dict[str, Path]) -> list[Measure]:
    """Everything but the restart."""
    results = [
        measure("meeting of the ranks", gang.met_after, "s"),
        *devices(gang),
        *products(gang),
        *all_reduces(gang),
        *pairs(gang),
    ]
    for name, folder in stores.items():
        results += store(gang, name, folder)
    return results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", action="append", default=[], metavar="NAME=FOLDER")
    options = parser.parse_args()
    stores = {name: Path(at) for name, _, at in (each.partition("=") for each in options.store)}
    folder, gang = Path(os.environ["CHECKPOINT_DIR"]), Gang()
    if gang.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
    state = gang.agreed(began_with(folder) if gang.rank == 0 else None)
    if state is None:
        save_and_die(gang, folder, measured(gang, stores))
    results = resumed(gang, folder, state)
    if gang.rank == 0:
        before = keep(folder, results)
        for mark, lines in ((RESULT, results), (BEFORE, before)):
            for line in lines:
                print(f"{mark}{json.dumps(line)}", flush=True)
        end = {"nodes": len(gang.nodes), "ranks": gang.ranks, "on": gang.kind}
        print(f"{END}{json.dumps(end)}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
