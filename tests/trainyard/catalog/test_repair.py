"""Which findings of the node monitoring agent replace a node."""

from __future__ import annotations

from trainyard.catalog.logs.xids import XID_CLASSES
from trainyard.catalog.repair import AT_END, FATAL_XIDS

EVENTS_ONLY = {*range(144, 151), 165, 168}
"""Critical in NVIDIA's catalogue, and nothing but events to agent 1.7.0."""


def test_an_xid_that_replaces_a_node_is_critical_to_whoever_reads_the_alert() -> None:
    critical = {xid for kind in XID_CLASSES if kind.severity == "critical" for xid in kind.xids}
    at_end = {int(reason.removeprefix("NvidiaXID").removesuffix("Error")) for reason in AT_END}
    assert {*FATAL_XIDS} == critical - EVENTS_ONLY | at_end
