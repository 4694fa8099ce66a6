"""Errors about what the namespace of a YAML file refuses: Pod Security's level baseline, unless the
stack file says `privileged_pods`.

Source: Kubernetes, Pod Security Standards, baseline (concepts/security/pod-security-standards).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Path
from trainyard.problems import InputError

CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
    *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
)
"""Capabilities that a container may add."""
REFUSED = {
    "** securityContext privileged": (True,),
    "** hostNetwork": (True,),
    "** hostIPC": (True,),
    "** hostPID": (True,),
    "** securityContext seccompProfile type": ("Unconfined",),
    "** securityContext procMount": ("Unmasked",),
}
"""Field → the values that baseline refuses."""
WHATEVER = ("** volumes * hostPath", "** ports * hostPort")
"""Fields that baseline refuses with any value."""
OF_THE_NODE = {pattern.split()[-1] for pattern in WHATEVER}
"""Their names: nobody sets them for EFA."""


def pod_security_errors(context: ManifestContext, namespace: str) -> Iterator[InputError]:
    """Every field with which the namespace admits no pod."""
    for path, value in _refused(context):
        name = next(step for step in reversed(path) if isinstance(step, str))
        what = f"not set {name}" if name != "add" else f"not add the capability {value}"
        why = "" if name in OF_THE_NODE else " (EFA needs no privileges)"
        yield context.error(
            path,
            f"{what}: namespace {namespace} admits pods of Pod Security's level baseline",
            value,
            f"delete it{why}, or write privileged_pods: true beside `manifest`",
        )


def _refused(context: ManifestContext) -> Iterator[tuple[Path, Any]]:
    get = context.get
    for pattern, values in REFUSED.items():
        yield from ((p, get(*p)) for p in context.workload.find(pattern) if get(*p) in values)
    for pattern in WHATEVER:
        yield from ((p, get(*p)) for p in context.workload.find(pattern) if get(*p))
    for path in context.workload.find("** securityContext capabilities add *"):
        if str(get(*path)).removeprefix("CAP_") not in CAPABILITIES:
            yield path, get(*path)
