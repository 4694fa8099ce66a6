#!/usr/bin/env -S python3 -S
"""torchrun for containers without torch: the same flags and checks, real ranks that really meet, no
training.

The agent (this program) joins the rendezvous, starts its ranks and ends as torchrun ends. The node
whose address the endpoint is hosts the hub (rendezvous.py). Facts of torch are in FLAGS and the
constants below it. TRAINYARD_STEPS and TRAINYARD_STEP_SECONDS set the length; CHECKPOINT_DIR, if
set, must be mounted storage. Limits of the rendezvous are divided by TRAINYARD_RENDEZVOUS_SPEED, so
that a test can wait them out.
"""

import argparse
import json
import multiprocessing
import os
import shlex
import socket
import sys
import time
from pathlib import Path

import etcd
import rendezvous

FLAGS = {
    "nnodes": "1:1",
    "nproc_per_node": "1",
    "rdzv_backend": "static",
    "rdzv_endpoint": "",
    "rdzv_id": "none",
    "rdzv_conf": "",
    "max_restarts": "0",
    "monitor_interval": "0.1",
    "start_method": "spawn",
    "role": "default",
    "log_dir": "",
    "redirects": "0",
    "tee": "0",
    "node_rank": "0",
    "master_addr": "127.0.0.1",
    "master_port": "29500",
    "local_addr": "",
    "event_log_handler": "null",
}
"""torchrun's options with a value and their defaults; each may also come from PET_<NAME>."""
SWITCHES = ("standalone", "module", "no_python", "run_path")
RDZV_PORT = 29400
JOIN_SECONDS = {"c10d": 600.0, "etcd-v2": 600.0, "static": 900.0}
"""Seconds that torch waits for the other nodes."""
LAST_CALL_SECONDS = 30.0
"""Seconds that torch waits for more nodes than the fewest (c10d: last_call_timeout)."""
CONNECT_SECONDS = {"c10d": 60.0, "etcd-v2": 60.0, "static": 900.0}
"""Seconds that torch tries to reach the store."""
SPEED = float(os.environ.get("TRAINYARD_RENDEZVOUS_SPEED", "1"))
NAMED_SECONDS = 5.0
"""Seconds that a pod may run before DNS knows its name."""
NCCL_SHM = 64 * 2**20
"""With a container's default /dev/shm NCCL cannot set up its segments between GPUs of one node."""
STEPS = int(os.environ.get("TRAINYARD_STEPS", "20"))
STEP_SECONDS = float(os.environ.get("TRAINYARD_STEP_SECONDS", "0.25"))
STEPS_PER_CHECKPOINT = 4
MARKER, BEFORE = "stand-in-checkpoint.json", "stand-in-checkpoint-before.json"
"""The newest checkpoint, and the one before in case it cannot be read, as a script that keeps two
has them."""
FABRIC = Path("/dev/infiniband/uverbs0")
"""The first EFA device. The rehearsal's kubelet writes into it what keeps packets from other nodes."""
FORK = multiprocessing.get_context("fork")


class Refused(SystemExit):
    """End of torch with a message and exit code 1."""

    def __init__(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)
        super().__init__(1)


# ---- what is asked for
# --------------------------------------------------------------------------------------------------


def arguments(argv: list[str], env: dict[str, str]) -> argparse.Namespace:
    """torchrun's command line; underscores and dashes mean the same."""
    parser = argparse.ArgumentParser(prog="torchrun", allow_abbrev=False)
    for name, default in FLAGS.items():
        parser.add_argument(
            f"--{name}",
            f"--{name.replace('_', '-')}",
            dest=name,
            default=env.get(f"PET_{name.upper()}", default),
        )
    for name in SWITCHES:
        parser.add_argument(
            f"--{name}", f"--{name.replace('_', '-')}", dest=name, action="store_true"
        )
    parser.add_argument("script")
    parser.add_argument("script_args", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    if args.standalone:
        args.rdzv_backend, args.rdzv_endpoint, args.nnodes = "c10d", "localhost:0", "1"
    if args.rdzv_backend not in JOIN_SECONDS:
        raise Refused(
            "the rehearsal's torchrun does not implement the rendezvous backend"
            f" {args.rdzv_backend!r}"
        )
    if args.module or args.no_python:
        raise Refused(
            "the rehearsal's torchrun runs scripts only, neither --module nor --no_python"
        )
    return args


def gpus() -> int:
    """GPUs of this container."""
    return sum(
        name.removeprefix("nvidia").isdigit()
        for name in os.listdir("/dev")
        if name.startswith("nvidia")
    )


def ranks_here(nproc: str) -> int:
    """Number of ranks that torchrun makes of --nproc_per_node."""
    if nproc.isdigit():
        return int(nproc)
    if nproc == "gpu" and not gpus():
        raise Refused("ValueError: Cuda is not available.")
    if nproc in ("auto", "gpu", "cpu"):
        return gpus() if nproc != "cpu" and gpus() else os.cpu_count() or 1
    raise Refused(f"ValueError: Unsupported nproc_per_node value: {nproc}")


def check(script: str, ranks: int) -> None:
    """Refuse what would fail in the ranks of a real run."""
    if not os.path.exists(script):
        raise Refused(
            f"{sys.executable}: can't open file '{os.path.abspath(script)}': "
            "[Errno 2] No such file or directory"
        )
    compile(Path(script).read_text(), script, "exec")
    if gpus() and ranks > gpus():
        raise Refused(
            f"RuntimeError: CUDA error: invalid device ordinal ({ranks} ranks, {gpus()} GPUs on"
            " this node)"
        )
    memory = os.statvfs("/dev/shm")
    if gpus() and ranks > 1 and memory.f_blocks * memory.f_frsize <= NCCL_SHM:
        raise Refused(
            "RuntimeError: Bus error: insufficient shared memory (shm): /dev/shm has "
            f"{memory.f_blocks * memory.f_frsize // 2**20} MiB and NCCL needs more for {ranks} GPUs"
        )


def fabric() -> None:
    """Refuse as NCCL does where EFA's packets to another node are dropped (aws-ofi-nccl#663)."""
    if FABRIC.exists() and (wall := FABRIC.read_text()):
        raise Refused(
            "NCCL WARN NET/OFI Request completed with error. RC: 4126. Error: Unresponsive receiver"
            f" (reachable by EFA device but handshake failed): {wall}"
        )


# ---- the agent: one for each node
# --------------------------------------------------------------------------------------------------


def endpoint(args: argparse.Namespace) -> tuple[str, int]:
    """Host and port of the rendezvous."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return args.master_addr, int(args.master_port)
    host, _, port = args.rdzv_endpoint.partition(":")
    return host or "localhost", int(port or RDZV_PORT)


def is_this_machine(host: str) -> bool:
    """True where an address of the name is this container's: then it hosts the store."""
    if host in ("localhost", "127.0.0.1", socket.gethostname()):
        return True
    end = time.monotonic() + NAMED_SECONDS
    while True:
        try:
            with socket.socket() as probe:
                probe.bind((socket.gethostbyname(host), 0))
            return True
        except socket.gaierror:
            if time.monotonic() > end:
                return False
            time.sleep(0.2)
        except OSError:
            return False


def sizes(nnodes: str) -> tuple[int, int]:
    """The fewest and the most nodes."""
    fewest, _, most = nnodes.partition(":")
    return int(fewest), int(most or fewest)


def conf(text: str) -> dict[str, str]:
    """Pairs of --rdzv_conf; torch's ValueError (rendezvous/utils.py, _parse_rendezvous_config)."""
    said = dict[str, str]()
    for pair in text.split(",") if text.strip() else ():
        key, _, value = (part.strip() for part in pair.partition("="))
        if not (key and value):
            lacks = f"option '{key}' must have a value specified" if key else "string is malformed"
            raise Refused(f"ValueError: The rendezvous configuration {lacks}.")
        said[key] = value
    return said


def limit(args: argparse.Namespace, key: str, default: float) -> float:
    """A limit of the rendezvous in seconds, by --rdzv_conf or torch's default."""
    seconds = int(conf(args.rdzv_conf).get(key, default))
    if seconds <= 0:
        raise Refused(f"ValueError: The {key.removesuffix('_timeout')} timeout must be positive.")
    return seconds / SPEED


def join(args: argparse.Namespace, address: tuple[str, int], ranks: int) -> dict[str, int]:
    """Meet the other nodes: this node's place in the world. static has one limit for everything, c10d
    one for the store and one for the others."""
    backend, once = args.rdzv_backend, args.rdzv_backend == "static"
    connect = limit(args, "timeout" if once else "read_timeout", CONNECT_SECONDS[backend])
    seconds = limit(args, "timeout" if once else "join_timeout", JOIN_SECONDS[backend])
    try:
        line = rendezvous.connect(address, connect)
        line.say(
            {
                "run": args.rdzv_id,
                "ranks": ranks,
                "node_rank": int(args.node_rank),
                "fixed": args.rdzv_backend == "static",
            }
        )
        return line.hear(seconds)
    except TimeoutError:
        raise Refused("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError") from None
    except (OSError, rendezvous.Lost) as error:
        raise Refused(
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to"
            f" the C10d store has failed. See inner exception for details. ({address[0]}: {error})"
        ) from None


def attempt(args: argparse.Namespace, address: tuple[str, int], ranks: int) -> bool:
    """One round: meet, train, end together; the first rank that fails ends the others."""
    world = join(args, address, ranks)
    if world["size"] > ranks:
        fabric()
    processes = [
        FORK.Process(target=rank, args=(world["first"] + i, world["size"], i, address))
        for i in range(ranks)
    ]
    for process in processes:
        process.start()
    while any(p.exitcode is None for p in processes) and not any(p.exitcode for p in processes):
        time.sleep(0.1)
    local, failed = next(((i, p.exitcode) for i, p in enumerate(processes) if p.exitcode), (0, 0))
    for process in processes:
        process.kill()
        process.join()
    if failed:
        report = {
            "rank": world["first"] + local,
            "local_rank": local,
            "exitcode": failed,
            "host": socket.gethostname(),
        }
        print(
            f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: {args.script}"
            f" FAILED {json.dumps(report)}",
            file=sys.stderr,
            flush=True,
        )
    return not failed


def meeting(args: argparse.Namespace) -> tuple[tuple[str, int], rendezvous.Hub | None]:
    """Where the nodes meet, and the hub of the node that hosts it. c10d finds the host by its address,
    static by its rank, etcd-v2 by who is first."""
    host, port = endpoint(args)

    def own(at: int) -> rendezvous.Hub:
        more = limit(args, "last_call_timeout", LAST_CALL_SECONDS)
        return rendezvous.Hub(at, args.rdzv_id, sizes(args.nnodes), more)

    if args.rdzv_backend == "etcd-v2":
        server = own(0)
        mine = f"{socket.gethostbyname(socket.gethostname())}:{server.port}"
        found = etcd.hub(f"{host}:{port}", args.rdzv_id, mine)
        host, _, there = found.rpartition(":")
        return (host, int(there)), server if found == mine else None
    if args.node_rank == "0" if args.rdzv_backend == "static" else is_this_machine(host):
        server = own(port)
        return ("127.0.0.1", server.port), server
    return (host, port), None


def main(argv: list[str]) -> int:
    """As torchrun: every failed round costs one restart."""
    args = arguments(argv, dict(os.environ))
    ranks = ranks_here(args.nproc_per_node)
    check(args.script, ranks)
    print(
        f"stand-in torchrun: {args.script} is read for syntax and not executed. It runs here with image"
        f" trainyard/torch-cpu:1, after `make torch`. Its arguments would be: {shlex.join(args.script_args) or 'none'}",
        flush=True,
    )
    (host, port), server = meeting(args)
    beside = FORK.Process(target=server.serve, daemon=True) if server else None
    if beside:
        beside.start()
    complete = any(attempt(args, (host, port), ranks) for _ in range(int(args.max_restarts) + 1))
    if beside:
        beside.join(2)  # others may still read their last answers
    return 0 if complete else 1


# ---- the ranks
# --------------------------------------------------------------------------------------------------


def rank(number: int, size: int, local: int, address: tuple[str, int]) -> None:
    """One rank's process; exit code 1 where a peer is lost, as a collective that fails."""
    print(
        f"[rank {number}/{size}] node {socket.gethostname()} {f'gpu {local}' if gpus() else 'cpu'}",
        flush=True,
    )
    try:
        folder = checkpoint_folder()
        line = rendezvous.connect(address, rendezvous.FIRST_STEP_SECONDS)
        line.say({"rank": number})
        train(number, line, folder)
    except (rendezvous.Lost, OSError, RuntimeError) as error:
        print(
            f"[rank {number}/{size}] {type(error).__name__}: {error}", file=sys.stderr, flush=True
        )
        sys.exit(1)


def checkpoint_folder() -> Path | None:
    """Folder of checkpoints: on a volume, since the container's own root ends with the pod."""
    if not (name := os.environ.get("CHECKPOINT_DIR")):
        return None
    folder = Path(name)
    place = next(each for each in (folder, *folder.parents) if each.is_dir())
    if place.stat().st_dev == Path("/").stat().st_dev:
        raise RuntimeError(
            f"CHECKPOINT_DIR {name} is on the container's own root: no volume is mounted there"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def train(number: int, line: rendezvous.Line, folder: Path | None) -> None:
    """Take every step together with all other ranks; rank 0 saves and tells."""
    marker = folder / MARKER if folder else None
    first = first_step(folder, number) if folder else 0
    if number == 0 and first:
        print(f"resumed from step {first - 1}", flush=True)
    for step in range(first, STEPS):
        time.sleep(STEP_SECONDS)
        rendezvous.meet(line, step)
        if number == 0:
            print(f"step {step + 1}/{STEPS}: all ranks met", flush=True)
        if number == 0 and marker and (step + 1) % STEPS_PER_CHECKPOINT == 0:
            save(marker, step)
            print(f"saved step {step}", flush=True)
    rendezvous.meet(line, rendezvous.END)


def first_step(folder: Path, number: int) -> int:
    """After that of the newest checkpoint that can be read."""
    for name in (MARKER, BEFORE):
        file = folder / name
        try:
            if file.exists():
                return json.loads(file.read_text())["step"] + 1
        except ValueError as error:
            if number == 0:
                print(f"{name} cannot be used: {error}", file=sys.stderr, flush=True)
    return 0


def save(marker: Path, step: int) -> None:
    """Beside its place first: a kill in the middle leaves the checkpoint before."""
    fresh = marker.with_suffix(".new")
    fresh.write_text(json.dumps({"step": step}))
    if marker.exists():
        marker.replace(marker.with_name(BEFORE))
    fresh.replace(marker)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
