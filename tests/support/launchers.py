"""Ends of logs: what launchers print after a rank has failed."""

from __future__ import annotations

ELASTIC = "torch/distributed/elastic/multiprocessing/api.py"
NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
RULE = "=" * 60
DASHES = "-" * 60
SIGNALS = {6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV"}


def _block(number: int, rank: int, code: int, traceback: str, file: str = "<N/A>") -> str:
    return f"""[{number}]:
  time      : 2026-11-26_13:00:45
  host      : t5-node-0-1.t5
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: {4242 - number})
  error_file: {file}
  traceback : {traceback}"""


def torchrun(
    code: str, rank: str, *recorded: str, program: str = "torchrun", old: bool = False
) -> str:
    """As torch 2.9 or 1.13 ends, read in torch/distributed/elastic/multiprocessing/errors."""
    exits, local = int(code), int(rank)
    said = f"failed (exitcode: {exits}) local_rank: {local} (pid: 4242) of binary: /opt/conda/bin/python"
    traceback = NO_TRACEBACK
    if exits < 0:
        traceback = f"Signal {-exits} ({SIGNALS[-exits]}) received by PID 4242"
    if recorded:
        traceback = (
            "Traceback (most recent call last):\n"
            f'    File "/opt/conda/lib/{ELASTIC}", line 355, in wrapper\n'
            f"      return f(*args, **kwargs)\n  {' '.join(recorded)}\n  "
        )
    name = ELASTIC.replace("/", ".").removesuffix(".py")
    first = [
        f"WARNING:{name}:Sending process 4241 closing signal SIGTERM",
        f"ERROR:{name}:{said}",
    ]
    new = [
        f"W1126 13:00:45.000000 1 {ELASTIC}:897] Sending process 4241 closing signal SIGTERM",
        f"E1126 13:00:46.000000 1 {ELASTIC}:874] {said}",
    ]
    other = _block(1, local + 1, -15, "Signal 15 (SIGTERM) received by PID 4241")
    return "\n".join(
        [
            *(first if old else new),
            "Traceback (most recent call last):",
            f'  File "/opt/conda/bin/{program}", line 8, in <module>',
            "    sys.exit(main())",
            '  File "/opt/conda/lib/python3.11/site-packages/torch/distributed/run.py", line 918, in main',
            "    run(args)",
            "    raise ChildFailedError(",
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            RULE,
            "/workspace/train.py FAILED",
            DASHES,
            "Failures:",
            other,
            DASHES,
            "Root Cause (first observed failure):",
            _block(0, local, exits, traceback, "/tmp/error.json" if recorded else "<N/A>"),
            RULE,
        ]
    )


def torchrun_2_11(code: str, rank: str, process: str) -> str:
    """As torch 2.11 ended on a real GPU, with one process a node and no other failure."""
    exits, conda = int(code), "/opt/conda/lib/python3.12/site-packages/torch/distributed"
    said = NO_TRACEBACK
    if exits < 0:
        said = f"Signal {-exits} ({SIGNALS[-exits]}) received by PID {process}"
    block = f"""[0]:
  time      : 2026-11-27_02:27:22
  host      : localhost
  rank      : {rank} (local_rank: 0)
  exitcode  : {code} (pid: {process})
  error_file: <N/A>
  traceback : {said}"""
    width = min(60, max(map(len, block.split("\n"))))
    return f"""E1127 02:27:22.000000 1803 {ELASTIC}:986] failed (exitcode: {code}) local_rank: 0 (pid: {process}) of binary: /opt/conda/bin/python3
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "<frozen runpy>", line 88, in _run_code
  File "{conda}/run.py", line 994, in <module>
    main()
  File "{conda}/elastic/multiprocessing/errors/__init__.py", line 362, in wrapper
    return f(*args, **kwargs)
           ^^^^^^^^^^^^^^^^^^
  File "{conda}/run.py", line 990, in main
    run(args)
  File "{conda}/run.py", line 981, in run
    elastic_launch(
  File "{conda}/launcher/api.py", line 170, in __call__
    return launch_agent(self._config, self._entrypoint, list(args))
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "{conda}/launcher/api.py", line 317, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
{"=" * width}
/workspace/train.py FAILED
{"-" * width}
Failures:
  <NO_OTHER_FAILURES>
{"-" * width}
Root Cause (first observed failure):
{block}
{"=" * width}"""  # noqa: E501 (as it was printed)


def _accelerate(code: str) -> str:
    """As accelerate 1.2 ends on one GPU (accelerate/commands/launch.py, simple_launcher)."""
    return f"""Traceback (most recent call last):
  File "/opt/conda/bin/accelerate", line 8, in <module>
    sys.exit(main())
  File "/opt/conda/lib/python3.11/site-packages/accelerate/commands/accelerate_cli.py", line 47, in main
    args.func(args)
  File "/opt/conda/lib/python3.11/site-packages/accelerate/commands/launch.py", line 1017, in launch_command
    simple_launcher(args)
subprocess.CalledProcessError: Command '['python', '/workspace/train.py']' returned non-zero exit status {code}."""


def _deepspeed(code: str) -> str:
    """As deepspeed 0.16 ends (deepspeed/launcher/launch.py)."""
    at = "[2026-11-20 20:31:29,210]"
    command = "['/opt/conda/bin/python', '-u', 'train.py', '--local_rank=3']"
    return f"""{at} [INFO] [launch.py:315:sigkill_handler] Killing subprocess 3353707
{at} [INFO] [launch.py:315:sigkill_handler] Killing subprocess 3353708
{at} [ERROR] [launch.py:321:sigkill_handler] {command} exits with return code = {code}"""


def _mpirun(code: str) -> str:
    """As Open MPI 4.1 ends."""
    line = "-" * 74
    return f"""{line}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{line}
{line}
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[32288,1],0]
  Exit code:    {code}
{line}"""


def _mpirun_signal(code: str) -> str:
    line = "-" * 74
    said = f"process rank 3 with PID 0 on node t5-node-0-1 exited on signal {code} (Killed)."
    return f"{line}\nmpirun noticed that {said}\n{line}"


ENDS = {
    "@torchrun": torchrun,
    "@torchrun-old": lambda *given: torchrun(*given, old=True),
    "@torchrun-recorded": torchrun,
    "@torchrun-2.11": torchrun_2_11,
    "@accelerate-torchrun": lambda *given: torchrun(*given, program="accelerate"),
    "@accelerate": _accelerate,
    "@deepspeed": _deepspeed,
    "@mpirun": _mpirun,
    "@mpirun-signal": _mpirun_signal,
}
"""Name in tests/corpus/failures.txt → the summary, of an exit code and the rank that is blamed."""
