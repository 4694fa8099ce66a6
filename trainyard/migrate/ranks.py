"""GPUs and processes in a pod of an entry, as a file states them."""

from __future__ import annotations

from trainyard.derive.scripts import launches
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Container


def gpus_and_ranks(
    context: ManifestContext, container: Container
) -> tuple[dict[str, int], list[str]]:
    """gpus_per_node and processes_per_node where they are not the default, and a sentence for a
    number that the file does not say."""
    ranks, word = _ranks(context, container)
    whole_node = context.instance_type.gpus if context.instance_type else 0
    counts = {} if context.gpus in (0, whole_node) else {"gpus_per_node": context.gpus}
    counts |= {"processes_per_node": ranks} if ranks != context.gpus else {}
    sentence = (
        f"processes_per_node: {ranks}: `{word}` is one for each vCPU that the file requests, and one"
        " where it requests none"
    )
    return counts, [sentence] if word else []


def _ranks(context: ManifestContext, container: Container) -> tuple[int, str]:
    """(processes of a pod, the word of the file that makes them one for each vCPU, or nothing)."""
    values = [
        context.workload.get("spec", "trainer", "numProcPerNode"),
        context.workload.get("spec", "nprocPerNode"),
        context.policy("torch", "numProcPerNode"),
        *(launch.ranks for launch in launches(container.script)),
    ]
    numbers = [int(value) for value in map(str, values) if value.isdecimal()]
    word = next((str(value) for value in values if value not in (None, "")), "")
    if numbers:
        return numbers[0], ""
    if word == "cpu" or (word == "auto" and not context.gpus):
        return context.cpus or 1, word
    return context.gpus or 1, ""
