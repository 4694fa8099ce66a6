"""Every PromQL query of dashboards and alerts, each of them once.

Those of queues, stores and controllers: platform_queries.py. Names of metrics: what the exporters and
controllers in trainyard/parts/metrics.py serve; tests/trainyard/objects/metrics/test_queries.py compares.
"""

from __future__ import annotations

from trainyard.objects.metrics.platform_queries import PLATFORM
from trainyard.objects.metrics.query import NODE, POOL, RANK, RUN, Query

BUSY = 0.05
"""Share of a GPU's SMs from which on it counts as busy. GPU_UTIL is 100 % while ranks wait for each
other in NCCL, so it says nothing."""


def _by_rank(metric: str, *, of: str = "avg") -> str:
    """A metric of GPUs, for each node of a run."""
    return f'{of} by (namespace, run, rank, node) ({metric}{{run!="",WHERE}})'


def _by_run(metric: str) -> str:
    """Query for a figure of a run that the history has."""
    return f"max by (namespace, run) (trainyard_run_{metric}{{WHERE}})"


def _since(metric: str) -> str:
    """Seconds since a moment of a run."""
    return f"time() - {_by_run(f'{metric}_seconds')}"


def _worst_device(counter: str) -> str:
    """Events a second of an EFA device, for each node those of its worst one."""
    return f"max by (node, pool) (rate(node_amazonefa_{counter}{{WHERE}}[2m]))"


SM, _TENSOR, _DRAM = (f"DCGM_FI_PROF_{name}_ACTIVE" for name in ("SM", "PIPE_TENSOR", "DRAM"))
"""Shares of a GPU that work, 0 to 1; SM: of its streaming multiprocessors."""

_NOTICES = "spot_interrupted|capacity_reservation_interrupted|scheduled_change|event_status"
"""Karpenter 1.14.1, pkg/controllers/interruption/messages/types.go."""
_TAKEN = f'karpenter_nodeclaims_disrupted_total{{reason=~"{_NOTICES}",WHERE}}'

QUERIES: dict[str, Query] = {
    # ---- nodes
    "sick nodes": Query(
        promql="max by (sick_node, sick_pool, reason, state) (trainyard_repair_sick{WHERE})",
        title="Sick nodes",
        unit="short",
        legend="{{sick_node}} {{reason}} {{state}}",
    ),
    # ---- GPUs
    "gpus": Query(promql="count(DCGM_FI_DEV_POWER_USAGE{WHERE})", title="GPUs", unit="short"),
    "gpus held": Query(
        promql='count(DCGM_FI_DEV_POWER_USAGE{pod!="",WHERE}) or vector(0)',
        title="GPUs that pods hold",
        unit="short",
    ),
    "gpus busy": Query(
        promql=f'count({SM}{{pod!="",WHERE}} > {BUSY}) or vector(0)',
        title="GPUs that compute",
        unit="short",
    ),
    "gpu power": Query(
        promql="sum by (pool) (DCGM_FI_DEV_POWER_USAGE{WHERE})",
        title="Power of GPUs",
        unit="watt",
        legend="{{pool}}",
    ),
    "gpu temperature": Query(
        promql="max by (node) (DCGM_FI_DEV_GPU_TEMP{WHERE})",
        title="Hottest GPU of each node",
        unit="celsius",
        legend=NODE,
    ),
    "gpu memory errors": Query(
        promql=(
            "max by (node, gpu, pool) (DCGM_FI_DEV_ROW_REMAP_FAILURE{WHERE} > 0"
            " or DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{WHERE} > 0)"
        ),
        title="GPUs with broken memory",
        unit="short",
        legend="{{node}} GPU {{gpu}}",
    ),
    "xids": Query(
        # A gauge of the last 5 minutes, and one without the label xid where there was none.
        promql=(
            "max by (node, gpu, xid, pool, namespace, run)"
            ' (max_over_time(DCGM_EXP_XID_ERRORS_COUNT{xid!="",xid!="0",WHERE}[5m])) > 0'
        ),
        title="Xids of the last minutes",
        unit="short",
        legend="{{node}} GPU {{gpu}} Xid {{xid}}",
    ),
    # ---- EFA
    "efa sent": Query(
        promql="sum by (node) (rate(node_amazonefa_tx_bytes{WHERE}[5m]))",
        title="EFA, sent",
        unit="Bps",
        legend=NODE,
    ),
    "efa retransmissions": Query(
        promql="sum by (node) (rate(node_amazonefa_retrans_pkts{WHERE}[5m]))",
        title="EFA, packets sent again",
        unit="pps",
        legend=NODE,
    ),
    "efa timeouts": Query(
        promql=_worst_device("retrans_timeout_events"),
        title="EFA, packets without an answer in time",
        unit="cps",
        legend=NODE,
    ),
    "efa unresponsive": Query(
        promql=_worst_device("unresponsive_remote_events"),
        title="EFA, other ends that do not answer",
        unit="cps",
        legend=NODE,
    ),
    # ---- runs
    "run sm": Query(promql=_by_rank(SM), title="SMs at work", unit="percentunit", legend=RANK),
    "run tensor": Query(
        promql=_by_rank(_TENSOR), title="Tensor cores at work", unit="percentunit", legend=RANK
    ),
    "run dram": Query(
        promql=_by_rank(_DRAM), title="GPU memory at work", unit="percentunit", legend=RANK
    ),
    "run power": Query(
        promql=_by_rank("DCGM_FI_DEV_POWER_USAGE", of="sum"),
        title="Power of the GPUs of a rank",
        unit="watt",
        legend=RANK,
    ),
    "run clock": Query(
        promql=f"{_by_rank('DCGM_FI_DEV_SM_CLOCK', of='min')} * 1e6",
        title="Slowest SM clock of a rank",
        unit="hertz",
        legend=RANK,
    ),
    "run median clock": Query(
        promql=(
            "quantile by (namespace, run)"
            f" (0.5, {_by_rank('DCGM_FI_DEV_SM_CLOCK', of='min')}) * 1e6"
        ),
        title="SM clock of the middle rank",
        unit="hertz",
        legend="{{namespace}} {{run}}",
    ),
    "run gpu memory": Query(
        promql=f"{_by_rank('DCGM_FI_DEV_FB_USED', of='max')} * 1048576",
        title="Fullest GPU memory of a rank",
        unit="bytes",
        legend=RANK,
    ),
    "run nvlink": Query(
        promql=_by_rank("DCGM_FI_PROF_NVLINK_TX_BYTES", of="sum"),
        title="NVLink, sent",
        unit="Bps",
        legend=RANK,
    ),
    "run efa": Query(
        # Counters of EFA know no pod: a rank has those of its node, whose devices one gang holds.
        promql=(
            f"{_by_rank('DCGM_FI_DEV_POWER_USAGE', of='count')} * 0 + on (node) group_left ()"
            " sum by (node) (rate(node_amazonefa_tx_bytes[5m]))"
        ),
        title="EFA, sent",
        unit="Bps",
        legend=RANK,
    ),
    "run memory": Query(
        promql=_by_rank("container_memory_working_set_bytes", of="sum"),
        title="Memory of the host",
        unit="bytes",
        legend=RANK,
    ),
    "run cpu": Query(
        promql=(
            "sum by (namespace, run, rank, node)"
            ' (rate(container_cpu_usage_seconds_total{run!="",WHERE}[5m]))'
        ),
        title="CPUs in use",
        unit="short",
        legend=RANK,
    ),
    "run busiest": Query(
        # Ranks that wait in NCCL keep a few SMs busy, and neither tensor cores nor memory.
        # By name: `or` would take the second metric only where the first is missing.
        promql=(
            "max by (namespace, run)"
            ' ({__name__=~"DCGM_FI_PROF_(PIPE_TENSOR|DRAM)_ACTIVE",run!="",WHERE})'
        ),
        title="Busiest GPU of a run",
        unit="percentunit",
        legend="{{namespace}} {{run}}",
    ),
    "run idlest rank": Query(
        promql=f"min by (namespace, run) ({_by_rank(SM)})",
        title="Idlest rank of a run",
        unit="percentunit",
        legend="{{namespace}} {{run}}",
    ),
    "run busiest rank": Query(
        promql=f"max by (namespace, run) ({_by_rank(SM)})",
        title="Busiest rank of a run",
        unit="percentunit",
        legend="{{namespace}} {{run}}",
    ),
    # ---- what runs print
    **{
        name: Query(promql=promql, title=title, unit=unit, legend=RUN)
        for name, promql, title, unit in (
            ("run step", _by_run("step"), "Step", "short"),
            ("run step seconds", _by_run("step_seconds"), "Time of a step", "s"),
            ("run unsaved", _since("unsaved_since"), "Age of the newest checkpoint", "s"),
            ("run interval", _by_run("checkpoint_interval_seconds"), "Interval of the plan", "s"),
            ("run goodput", _by_run("goodput"), "Goodput, measured", "percentunit"),
            ("run planned goodput", _by_run("goodput_planned"), "Goodput, planned", "percentunit"),
            ("run restarts", _by_run("restarts"), "Restarts of the gang", "short"),
        )
    },
    # ---- pools
    "pool nodes": Query(
        promql='sum by (nodepool) (karpenter_nodepools_usage{resource_type="nodes",WHERE})',
        title="Nodes of pools",
        unit="short",
        legend=POOL,
    ),
    "pool limit": Query(
        promql='sum by (nodepool) (karpenter_nodepools_limit{resource_type="nodes",WHERE})',
        title="Most nodes of pools",
        unit="short",
        legend=POOL,
    ),
    "pool dollars": Query(
        promql="sum by (nodepool) (karpenter_nodepools_cost_total{WHERE})",
        title="On-demand dollars an hour, as Karpenter knows them",
        unit="currencyUSD",
        legend=POOL,
    ),
    "launches": Query(
        promql="sum by (nodepool) (increase(karpenter_nodeclaims_created_total{WHERE}[1h]))",
        title="Nodes launched in an hour",
        unit="short",
        legend=POOL,
    ),
    "disruptions": Query(
        promql=(
            "sum by (nodepool, reason) (increase(karpenter_nodeclaims_disrupted_total{WHERE}[1h]))"
        ),
        title="Nodes taken away in an hour",
        unit="short",
        legend="{{nodepool}} {{reason}}",
    ),
    "taken back": Query(
        # A counter begins at 1, of which increase() sees nothing: so what was there 15 minutes ago
        # counts as 0, if Karpenter was seen then.
        promql=(
            f"sum by (nodepool, reason) ({_TAKEN} - ({_TAKEN} offset 15m or {_TAKEN} * 0)) > 0"
            ' and on () max(up{job="karpenter"} offset 15m)'
        ),
        title="Nodes that AWS takes back",
        unit="short",
        legend="{{nodepool}} {{reason}}",
    ),
    "node hours": Query(
        promql=(
            "sum_over_time((max by (nodepool)"
            ' (karpenter_nodepools_usage{resource_type="nodes",WHERE}))[1d:5m]) / 12'
        ),
        title="Hours of nodes in a day",
        unit="short",
        legend=POOL,
    ),
    "launch errors": Query(
        promql=(
            "sum by (error)"
            ' (increase(karpenter_cloudprovider_errors_total{method="Create",WHERE}[15m])) > 0'
        ),
        title="Errors of EC2 at launches",
        unit="short",
        legend="{{error}}",
    ),
    "pods without a node": Query(
        promql="sum(karpenter_scheduler_unschedulable_pods_count{WHERE})",
        title="Pods that fit no pool",
        unit="short",
    ),
    **PLATFORM,
}
"""Name → query."""


def query(name: str, matchers: str = "") -> str:
    """A query by its name, for series with these labels."""
    return QUERIES[name].where(matchers)
