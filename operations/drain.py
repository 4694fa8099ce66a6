"""`python -m operations.drain`: end every TrainJob, through the current kubeconfig, before an environment is destroyed.

The graph ends its own jobs. One that somebody sent by hand holds its runtime (a finalizer) and its nodes (pods that
must not be disrupted), and `pulumi destroy` would wait half an hour for each and give up.
"""

from __future__ import annotations

import json
import subprocess
import sys

KIND = "trainjobs.trainer.kubeflow.org"


def main() -> int:
    """End them and name each; 0 when none is left, or when the cluster does not know TrainJobs."""
    found = _kubectl("get", KIND, "--all-namespaces", "--output=json")
    if found.returncode:
        return 0  # no cluster, or no Trainer: nothing of its runs
    for job in json.loads(found.stdout)["items"]:
        space, name = job["metadata"]["namespace"], job["metadata"]["name"]
        print(f"ends TrainJob {space}/{name}", flush=True)
        _kubectl("delete", KIND, name, f"--namespace={space}", "--wait", "--timeout=120s")
    left = _kubectl("get", KIND, "--all-namespaces", "--output=name").stdout
    return 1 if left.strip() else 0


def _kubectl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", *words, "--request-timeout=150s"], capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())
