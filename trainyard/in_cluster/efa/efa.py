"""Serves the counters of a node's EFA devices as Prometheus reads them. Its own exporter of nodes reads
none of them (node_exporter 1.12.1, collector/infiniband_linux.go).

It runs on each node with EFA, with nothing but Python and no rights. Names of the metrics: those of AWS's
exporter (awslabs/awsome-distributed-ai, 3.efa-node-exporter). What a counter counts: EC2 User Guide,
efa-working-monitor.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from api_server import serve

FOLDERS = "class/infiniband/*/ports/*/hw_counters"
COUNTERS = (
    "rx_bytes",
    "tx_bytes",
    "rdma_read_bytes",
    "rdma_write_bytes",
    "retrans_bytes",
    "retrans_pkts",
    "retrans_timeout_events",
    "impaired_remote_conn_events",
    "unresponsive_remote_events",
    "rx_drops",
)
"""Files of a port. An older device or driver lacks some: AWS has retransmissions from Nitro v4 on."""


def metrics(system: Path) -> str:
    """Each counter of each port, as it is now. `system`: /sys of the node."""
    lines: dict[str, list[str]] = {name: [] for name in COUNTERS}
    # Port by port: what the kernel has of a port is good for 10 ms, then it asks the device again.
    for folder in sorted(system.glob(FOLDERS)):
        of = f'device="{folder.parents[2].name}",port="{folder.parent.name}"'
        for name in COUNTERS:
            try:
                value = int((folder / name).read_text())
            except (OSError, ValueError):  # not counted, or the device has gone away
                continue
            lines[name].append(f"node_amazonefa_{name}{{{of}}} {value}\n")
    return "".join(
        f"# TYPE node_amazonefa_{name} counter\n{''.join(found)}"
        for name, found in lines.items()
        if found
    )


def main() -> None:
    """Until SIGTERM, which the first process of a container gets only if it waits for it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    serve(int(sys.argv[2]), lambda: True, lambda: metrics(Path(sys.argv[1])))
    signal.sigwait({signal.SIGTERM})


if __name__ == "__main__":
    main()
