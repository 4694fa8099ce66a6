"""`python -m operations.drain`: end every job, through the current kubeconfig, before an
environment is destroyed.

The graph ends its own jobs. One that somebody sent by hand holds its runtime (a finalizer) and its
nodes (pods that must not be disrupted), and `pulumi destroy` would wait half an hour for each and
give up.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress

from operations.kubectl import Kubectl, kubectl_with, logged_in

KIND = "trainjobs.trainer.kubeflow.org"
KINDS = (KIND, "pytorchjobs.kubeflow.org")


def main() -> int:
    """End them and name each; 0 when none is left."""
    with logged_in(os.environ) as login:
        kubectl = kubectl_with(login, "--request-timeout=150s")
        return max(_end_all(kubectl, kind) for kind in KINDS)


def _end_all(kubectl: Kubectl, kind: str) -> int:
    """0 also when the cluster does not know the kind."""
    try:
        found = json.loads(kubectl("get", kind, "--all-namespaces", "--output=json"))["items"]
    except RuntimeError:
        return 0  # no cluster, or no controller of this kind: nothing of it runs
    for job in found:
        space, name = job["metadata"]["namespace"], job["metadata"]["name"]
        print(f"ends {job['kind']} {space}/{name}", flush=True)
        with suppress(RuntimeError):  # what is left is asked below
            kubectl("delete", kind, name, f"--namespace={space}", "--wait", "--timeout=120s")
    try:
        left = kubectl("get", kind, "--all-namespaces", "--output=name").strip()
    except RuntimeError as error:
        left = f"nobody knows which {kind}: {error}"
    if left:
        print(f"still there: {' '.join(left.split())}", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
