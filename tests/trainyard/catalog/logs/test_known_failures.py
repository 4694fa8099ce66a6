"""What lines with which runs fail mean, as ranks really print them."""

from __future__ import annotations

import re

import pytest

from trainyard.catalog.logs.known_failures import KNOWN
from trainyard.catalog.logs.last_error import meaning

OF_KUBELET = {
    "Evicted: The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available:"
    " 898240Ki. Container node was using 400Gi, request is 0, has larger consumption of"
    " ephemeral-storage.": "the disk of the node was full",
    "Evicted: The node had condition: [DiskPressure].": "the disk of the node was full",
    'Evicted: Usage of EmptyDir volume "dshm" exceeds the limit "64Gi".': "into its volume dshm than",
    "Evicted: Pod ephemeral local storage usage exceeds the total limit of containers 10Gi.": (
        "than its limit of ephemeral-storage"
    ),
    "Evicted: The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi.": (
        "the memory of the node was full"
    ),
    "UnexpectedAdmissionError: Pod was rejected: Allocate failed due to requested number of devices"
    " unavailable for nvidia.com/gpu. Requested: 8, Available: 7, which is unexpected": (
        "kubelet did not admit the pod"
    ),
    "OutOfnvidia.com/gpu: Pod was rejected: Node didn't have enough resource: nvidia.com/gpu,"
    " requested: 8, used: 8, capacity: 8": "kubelet did not admit the pod",
    "Terminated: Pod was terminated in response to imminent node shutdown.": (
        "the pod was ended from outside"
    ),
}
"""What kubelet 1.35 says of pods that it ends or does not admit: pkg/kubelet/eviction/helpers.go,
lifecycle/predicate.go, cm/devicemanager/manager.go, nodeshutdown."""
MESSAGES = OF_KUBELET | {
    "[rank 0/4] OSError: [Errno 28] No space left on device": "a file system is full",
    "RuntimeError: [enforce fail at inline_container.cc:626] . PytorchStreamWriter failed writing"
    " file data/0: file write failed: No space left on device": "a file system is full",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB": "a GPU has too little",
    "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central"
    " directory": "a checkpoint cannot be read",
    "_pickle.UnpicklingError: pickle data was truncated": "a checkpoint cannot be read",
    "json.decoder.JSONDecodeError: Expecting value: line 1 column 1": "a checkpoint cannot be read",
    "OSError: [Errno 5] Input/output error": "cannot be read or written",
    "OSError: [Errno 116] Stale file handle": "cannot be read or written",
}


@pytest.mark.parametrize(("text", "why"), MESSAGES.items())
def test_a_line_means_what_the_first_row_says_that_matches_it(text: str, why: str) -> None:
    means, do = meaning(text, KNOWN)
    assert why in means and do


def test_no_row_is_hidden_behind_another_one_and_none_leaves_a_gap_in_its_text() -> None:
    assert len(KNOWN) >= 30
    for row in KNOWN:
        groups = re.compile(row.pattern).groups
        assert groups == ("{0}" in row.why + row.do), row.pattern
    assert len({row.why for row in KNOWN}) == len(KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "step-00000200.pt cannot be used: it is cut\nresumed from step-00000100.pt",
        "step 28: loss 5",
    ],
)
def test_nothing_is_known_of_a_line_of_a_run_that_goes_on(text: str) -> None:
    assert meaning(text, KNOWN) == ("", "")
