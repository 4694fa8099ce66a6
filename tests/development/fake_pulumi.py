"""Stands in for the pulumi program where a test is about what drives it: keeps a lock, writes
events, can be cancelled.

Its program has one VPC; FAKE_SECONDS is how long that takes to make, FAKE_STUBBORN makes it deaf to
ctrl-C.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

BACKEND = (
    Path(os.environ["PULUMI_BACKEND_URL"].removeprefix("file://").partition("?")[0]) / ".pulumi"
)
STATE = BACKEND / "stacks/trainyard"
LOCKS = BACKEND / "locks/organization/trainyard"
URN = "urn:pulumi:{stack}::trainyard::trainyard:network:Network$aws:ec2/vpc:Vpc::network"


def _step(kind: str, stack: str, operation: str) -> dict[str, Any]:
    return {
        kind: {
            "metadata": {"op": operation, "urn": URN.format(stack=stack), "new": {"custom": True}}
        }
    }


def _update(stack: str, words: list[str], operation: str) -> None:
    cancelled: list[int] = []
    signal.signal(signal.SIGINT, lambda *_: cancelled.append(1))
    lock = LOCKS / stack / "one.json"
    if lock.exists():
        sys.exit("error: the stack is currently locked")
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.write_text(json.dumps({"pid": os.getpid()}))
    with open(words[words.index("--event-log") + 1], "a") as log:
        print(json.dumps(_step("resourcePreEvent", stack, operation)), file=log, flush=True)
        until = time.monotonic() + float(os.environ.get("FAKE_SECONDS", "0"))
        while time.monotonic() < until and (not cancelled or "FAKE_STUBBORN" in os.environ):
            time.sleep(0.02)
        print(json.dumps(_step("resOutputsEvent", stack, operation)), file=log)
    lock.unlink()
    resources = (
        [
            {
                "urn": URN.format(stack=stack),
                "type": "aws:ec2/vpc:Vpc",
                "id": "vpc-1",
                "custom": True,
            }
        ]
        if operation == "create"
        else []
    )
    (STATE / f"{stack}.json").write_text(json.dumps(resources))
    sys.exit(255 if cancelled else 0)


def main(words: list[str]) -> None:
    stack = os.environ["PULUMI_STACK"]
    match words:
        case ["stack", "init", name, *_]:
            STATE.mkdir(parents=True, exist_ok=True)
            (STATE / f"{name}.json").write_text("[]")
            with open(f"Pulumi.{name}.yaml", "a") as file:
                file.write("encryptionsalt: v1:salt\n")
        case ["stack", "export", *_]:
            print(
                json.dumps(
                    {"deployment": {"resources": json.loads((STATE / f"{stack}.json").read_text())}}
                )
            )
        case ["stack", "output", *_]:
            print(json.dumps({"jobs": {}, "kubeconfig": KUBECONFIG, "contract": {}}))
        case ["cancel", *_]:
            (LOCKS / stack / "one.json").unlink()
        case ["up" | "destroy" as command, *_]:
            _update(stack, words, {"up": "create", "destroy": "delete"}[command])
        case _:
            sys.exit(f"the fake knows no {words}")


KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "here",
    "clusters": [{"name": "here", "cluster": {"server": "https://127.0.0.1:1"}}],
    "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    "users": [
        {
            "name": "me",
            "user": {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                    "command": "aws",
                    "args": ["eks", "get-token"],
                }
            },
        }
    ],
}

if __name__ == "__main__":
    main(sys.argv[1:])
