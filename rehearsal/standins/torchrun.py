#!/usr/bin/env -S python3 -S
"""torchrun for containers without torch: the same flags and checks, real ranks that really meet, no training.

The agent (this program) joins the rendezvous, starts its ranks (rank.py) and ends as torchrun ends. The node whose
address the endpoint is hosts the hub (hub.py). Facts of torch are in FLAGS and the constants below it.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time

import hub

FLAGS = {"nnodes": "1:1", "nproc_per_node": "1", "rdzv_backend": "static", "rdzv_endpoint": "", "rdzv_id": "none",
         "rdzv_conf": "", "max_restarts": "0", "monitor_interval": "0.1", "start_method": "spawn", "role": "default",
         "log_dir": "", "redirects": "0", "tee": "0", "node_rank": "0", "master_addr": "127.0.0.1",
         "master_port": "29500", "local_addr": "", "event_log_handler": "null"}
"""torchrun's options with a value and their defaults; each may also come from PET_<NAME>."""
SWITCHES = ("standalone", "module", "no_python", "run_path")
RDZV_PORT = 29400
JOIN_SECONDS = {"c10d": 600.0, "static": 900.0}
"""How long torch waits for the other nodes."""
CONNECT_SECONDS = 60.0
"""How long torch tries to reach the store."""
NCCL_SHM = 64 * 2**20
"""With a container's default /dev/shm NCCL cannot set up its segments between GPUs of one node."""


class Refused(SystemExit):
    """What torch says, and exit code 1."""

    def __init__(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)
        super().__init__(1)


def arguments(argv: list[str], env: dict[str, str]) -> argparse.Namespace:
    """torchrun's command line; underscores and dashes mean the same."""
    parser = argparse.ArgumentParser(prog="torchrun", allow_abbrev=False)
    for name, default in FLAGS.items():
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", dest=name,
                            default=env.get(f"PET_{name.upper()}", default))
    for name in SWITCHES:
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", dest=name, action="store_true")
    parser.add_argument("script")
    parser.add_argument("script_args", nargs=argparse.REMAINDER)
    args = parser.parse_args(argv)
    if args.standalone:
        args.rdzv_backend, args.rdzv_endpoint, args.nnodes = "c10d", "localhost:0", "1"
    if args.rdzv_backend not in JOIN_SECONDS:
        raise Refused(f"the rehearsal's torchrun does not implement the rendezvous backend {args.rdzv_backend!r}")
    if len(set(args.nnodes.split(":"))) > 1:
        raise Refused(f"the rehearsal's torchrun does not implement elastic --nnodes={args.nnodes}")
    return args


def gpus() -> int:
    """GPUs of this container."""
    return sum(name.removeprefix("nvidia").isdigit() for name in os.listdir("/dev") if name.startswith("nvidia"))


def ranks_here(nproc: str) -> int:
    """What torchrun makes of --nproc_per_node."""
    if nproc.isdigit():
        return int(nproc)
    if nproc == "gpu" and not gpus():
        raise Refused("ValueError: Cuda is not available.")
    if nproc in ("auto", "gpu", "cpu"):
        return gpus() if nproc != "cpu" and gpus() else os.cpu_count() or 1
    raise Refused(f"ValueError: Unsupported nproc_per_node value: {nproc}")


def check(args: argparse.Namespace, ranks: int) -> None:
    """What would fail in the ranks of a real run."""
    if args.module or args.no_python:
        raise Refused("the rehearsal's torchrun runs scripts only, neither --module nor --no_python")
    if not os.path.exists(args.script):
        raise Refused(f"{sys.executable}: can't open file '{os.path.abspath(args.script)}': "
                      "[Errno 2] No such file or directory")
    with open(args.script) as script:
        compile(script.read(), args.script, "exec")
    if gpus() and ranks > gpus():
        raise Refused(f"RuntimeError: CUDA error: invalid device ordinal ({ranks} ranks, {gpus()} GPUs on this node)")
    memory = os.statvfs("/dev/shm")
    if gpus() and ranks > 1 and memory.f_blocks * memory.f_frsize <= NCCL_SHM:
        raise Refused("RuntimeError: Bus error: insufficient shared memory (shm): /dev/shm has "
                      f"{memory.f_blocks * memory.f_frsize // 2**20} MiB and NCCL needs more for {ranks} GPUs")


def endpoint(args: argparse.Namespace) -> tuple[str, int]:
    """Host and port of the rendezvous."""
    if args.rdzv_backend == "static" and not args.rdzv_endpoint:
        return args.master_addr, int(args.master_port)
    host, _, port = args.rdzv_endpoint.partition(":")
    return host or "localhost", int(port or RDZV_PORT)


def is_this_machine(host: str) -> bool:
    """Whether an address of the name belongs to this container: then it hosts the store."""
    if host in ("localhost", "127.0.0.1", socket.gethostname()):
        return True
    try:
        with socket.socket() as probe:
            probe.bind((socket.gethostbyname(host), 0))
        return True
    except OSError:
        return False


def hosts_the_hub(args: argparse.Namespace, host: str) -> bool:
    """c10d goes by the address, static by the node's rank."""
    return args.node_rank == "0" if args.rdzv_backend == "static" else is_this_machine(host)


def join_seconds(args: argparse.Namespace) -> float:
    """The rendezvous timeout, which --rdzv_conf may set."""
    conf = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    return float(conf.get("join_timeout") or conf.get("timeout") or JOIN_SECONDS[args.rdzv_backend])


def join(args: argparse.Namespace, address: tuple[str, int], ranks: int) -> tuple[hub.Member, dict[str, int]]:
    """Meet the other nodes: the connection to the hub, and this node's place in the world."""
    try:
        member = hub.connect(address, CONNECT_SECONDS)
    except OSError as error:
        raise Refused(f"torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the "
                      f"C10d store has failed. See inner exception for details. ({address[0]}: {error})") from None
    try:
        answer = member.ask({"kind": "node", "run": args.rdzv_id, "ranks": ranks, "node_rank": int(args.node_rank),
                             "fixed": args.rdzv_backend == "static"}, join_seconds(args))
    except hub.Lost as error:
        raise Refused(f"torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: {error}") from None
    if answer is None:
        member.close()
        raise Refused("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError")
    return member, answer


def start_ranks(args: argparse.Namespace, world: dict[str, int], address: tuple[str, int],
                ranks: int) -> list[subprocess.Popen[bytes]]:
    """One process a rank, with the variables torchrun gives it."""
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "rank.py")
    common = {"WORLD_SIZE": world["size"], "LOCAL_WORLD_SIZE": ranks, "GROUP_RANK": world["node"],
              "GROUP_WORLD_SIZE": world["nodes"], "MASTER_ADDR": address[0], "MASTER_PORT": address[1],
              "TORCHELASTIC_RUN_ID": args.rdzv_id, "TORCHELASTIC_MAX_RESTARTS": args.max_restarts,
              "TORCHELASTIC_RESTART_COUNT": world["round"]}
    return [subprocess.Popen([sys.executable, "-u", "-S", program, args.script, *args.script_args],
                             env=os.environ | {k: str(v) for k, v in common.items()}
                             | {"RANK": str(world["first"] + i), "LOCAL_RANK": str(i)}) for i in range(ranks)]


def wait(processes: list[subprocess.Popen[bytes]]) -> tuple[int, int] | None:
    """(local rank, exit code) of the first rank that fails, the others being stopped; None where all end well."""
    while True:
        codes = [p.poll() for p in processes]
        failed = next(((i, c) for i, c in enumerate(codes) if c), None)
        if failed or None not in codes:
            break
        time.sleep(0.1)
    for process in processes:
        process.kill()
        process.wait()
    return failed


def attempt(args: argparse.Namespace, address: tuple[str, int], ranks: int) -> bool:
    """One round: meet, train, end together."""
    member, world = join(args, address, ranks)
    failed = wait(start_ranks(args, world, address, ranks))
    member.close()
    if failed:
        rank, code = failed
        report = {"rank": world["first"] + rank, "local_rank": rank, "exitcode": code, "host": socket.gethostname()}
        print(f"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: {args.script} FAILED "
              f"{json.dumps(report)}", file=sys.stderr, flush=True)
    return not failed


def main(argv: list[str]) -> int:
    """As torchrun: every failed round costs one restart."""
    args = arguments(argv, dict(os.environ))
    ranks = ranks_here(args.nproc_per_node)
    check(args, ranks)
    print(f"stand-in torchrun: no torch here, so {args.script} is checked and not executed", flush=True)
    host, port = endpoint(args)
    server = None
    if hosts_the_hub(args, host):
        server, port = hub.serve(port, int(args.nnodes.partition(":")[0]), join_seconds(args))
        host = "127.0.0.1"
    try:
        return 0 if any(attempt(args, (host, port), ranks) for _ in range(int(args.max_restarts) + 1)) else 1
    finally:
        if server:
            hub.linger(server)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
