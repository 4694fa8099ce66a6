"""Two small programs for a PyTorchJob whose Master trains nothing. Both need nothing but the
image's own python3.

The operator numbers the Master among the nodes and ends the job with it. So a Worker corrects its
variables (and what kubelet has put into its command from them) before the command, and tells the
Master after it; the Master ends well when every Worker has, and when it is restarted they tell it
again.
"""

from __future__ import annotations

from collections.abc import Sequence

_COORDINATOR = """
import os, signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
workers = int(os.environ["PET_NNODES"]) - 1
server, done = socket.create_server(("", int(os.environ["MASTER_PORT"]))), {}
while len(done) < workers:
    line, _ = server.accept()
    line.settimeout(10)
    try:
        name = line.makefile().readline().strip()
    except OSError:
        continue
    if name.isdigit():
        done[name] = line
        print(f"worker {name} is done: {len(done)} of {workers}", flush=True)
for line in done.values():
    try:
        line.sendall(b"!")
    except OSError:
        pass
"""

_WORKER = """
import os, signal, socket, subprocess, sys, time
env = os.environ
master, port = env["MASTER_ADDR"], int(env["MASTER_PORT"])
first, rank, nodes = master.removesuffix("-master-0") + "-worker-0", int(env["RANK"]) - 1, int(env["PET_NNODES"]) - 1
ranks = int(env["PET_NPROC_PER_NODE"]) if env["PET_NPROC_PER_NODE"].isdigit() else 1
env.update(MASTER_ADDR=first, PET_MASTER_ADDR=first, RANK=str(rank), PET_NODE_RANK=str(rank), PET_NNODES=str(nodes),
           WORLD_SIZE=str(nodes * ranks))
command, asked = None, False
def leave(*_):
    global asked
    asked = True
    if command:
        command.terminate()
signal.signal(signal.SIGTERM, leave)
while rank and not asked:
    try:
        socket.getaddrinfo(first, port)
        break
    except OSError:
        time.sleep(2)
if asked:
    sys.exit(143)
command = subprocess.Popen([word.replace(master, first) for word in sys.argv[1:]])
if asked:
    command.terminate()
code = command.wait()
while code == 0:
    try:
        with socket.create_connection((master, port)) as line:
            line.sendall(f"{rank}\\n".encode())
            if line.recv(1):
                break
    except OSError:
        time.sleep(2)
sys.exit(code if code >= 0 else 128 - code)
"""

COORDINATOR = ["python3", "-c", _COORDINATOR]
"""The Master's command."""


def worker(command: Sequence[str]) -> list[str]:
    """The command, as the node of a job of which the Master is none."""
    return ["python3", "-c", _WORKER, *command]
