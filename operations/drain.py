"""`python -m operations.drain`: end every job, through the current kubeconfig, before an environment is destroyed.

The graph ends its own jobs. One that somebody sent by hand holds its runtime (a finalizer) and its nodes (pods that
must not be disrupted), and `pulumi destroy` would wait half an hour for each and give up.
"""

from __future__ import annotations

import json
import subprocess
import sys

KIND = "trainjobs.trainer.kubeflow.org"
KINDS = (KIND, "pytorchjobs.kubeflow.org")


def main() -> int:
    """End them and name each; 0 when none is left."""
    return max(map(_end_all, KINDS))


def _end_all(kind: str) -> int:
    """0 also when the cluster does not know the kind."""
    found = _kubectl("get", kind, "--all-namespaces", "--output=json")
    if found.returncode:
        return 0  # no cluster, or no controller of this kind: nothing of it runs
    for job in json.loads(found.stdout)["items"]:
        space, name = job["metadata"]["namespace"], job["metadata"]["name"]
        print(f"ends {job['kind']} {space}/{name}", flush=True)
        _kubectl("delete", kind, name, f"--namespace={space}", "--wait", "--timeout=120s")
    left = _kubectl("get", kind, "--all-namespaces", "--output=name").stdout
    return 1 if left.strip() else 0


def _kubectl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["kubectl", *words, "--request-timeout=150s"], capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())
