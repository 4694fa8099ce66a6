"""Queries of what runs use together: queues, stores, controllers, the API server and Prometheus.

Names of metrics: as in queries.py.
"""

from __future__ import annotations

from trainyard.objects.metrics.query import JOB, NODE, QUEUE, Query


def _share(metric: str) -> str:
    """GPUs of a queue, on all pools. Both replicas of Kueue serve the figure."""
    return (
        "sum by (cluster_queue) (max by (cluster_queue, flavor)"
        f' ({metric}{{resource="nvidia.com/gpu",WHERE}}))'
    )


PLATFORM: dict[str, Query] = {
    # ---- queues: both replicas of Kueue serve the gauges
    "waiting": Query(
        promql="max by (cluster_queue, status) (kueue_pending_workloads{WHERE})",
        title="Jobs that wait",
        unit="short",
        legend="{{cluster_queue}} {{status}}",
    ),
    "admitted": Query(
        promql="max by (cluster_queue) (kueue_admitted_active_workloads{WHERE})",
        title="Jobs that are started",
        unit="short",
        legend=QUEUE,
    ),
    "quota": Query(
        promql=_share("kueue_cluster_queue_nominal_quota"),
        title="GPUs guaranteed",
        unit="short",
        legend=QUEUE,
    ),
    "quota used": Query(
        promql=_share("kueue_cluster_queue_resource_usage"),
        title="GPUs in use",
        unit="short",
        legend=QUEUE,
    ),
    "wait": Query(
        promql=(
            "histogram_quantile(0.95, sum by (cluster_queue, le)"
            " (rate(kueue_admission_wait_time_seconds_bucket{WHERE}[1h])))"
        ),
        title="Wait before the start, all but the longest 5 %",
        unit="s",
        legend=QUEUE,
    ),
    "evictions": Query(
        promql=(
            "sum by (cluster_queue, reason) (increase(kueue_evicted_workloads_total{WHERE}[1h]))"
        ),
        title="Jobs stopped for others in an hour",
        unit="short",
        legend="{{cluster_queue}} {{reason}}",
    ),
    # ---- stores
    "store fill": Query(
        promql=(
            'max by (device) (1 - node_filesystem_avail_bytes{fstype="lustre",WHERE}'
            ' / node_filesystem_size_bytes{fstype="lustre",WHERE})'
        ),
        title="Fill of Lustre",
        unit="percentunit",
        legend="{{device}}",
    ),
    "store in 4 hours": Query(
        promql=(
            "min by (device)"
            ' (predict_linear(node_filesystem_avail_bytes{fstype="lustre",WHERE}[1h], 14400))'
        ),
        title="Free bytes of Lustre in 4 hours",
        unit="bytes",
        legend="{{device}}",
    ),
    # ---- platform
    "programs": Query(
        promql="max by (job) (up{WHERE})", title="Programs that answer", unit="short", legend=JOB
    ),
    "exporters": Query(
        promql='min by (job, node) (up{job=~"gpus|nodes|efa",WHERE})',
        title="Exporters that answer",
        unit="short",
        legend="{{job}} {{node}}",
    ),
    "nodes of pools": Query(
        promql='max by (node) (up{job="containers",pool!="",WHERE})',
        title="Nodes of pools whose kubelet answers",
        unit="short",
        legend=NODE,
    ),
    "reconcile errors": Query(
        promql="sum by (job) (rate(controller_runtime_reconcile_errors_total{WHERE}[5m]))",
        title="Errors of controllers a second",
        unit="short",
        legend=JOB,
    ),
    "work waiting": Query(
        promql="sum by (job) (workqueue_depth{WHERE})",
        title="Objects that controllers have not looked at",
        unit="short",
        legend=JOB,
    ),
    "program memory": Query(
        promql="max by (job) (process_resident_memory_bytes{WHERE})",
        title="Memory of programs",
        unit="bytes",
        legend=JOB,
    ),
    "api errors": Query(
        promql='sum by (code) (rate(apiserver_request_total{code=~"5..",WHERE}[5m]))',
        title="Errors of the API server a second",
        unit="reqps",
        legend="{{code}}",
    ),
    "api requests": Query(
        promql="sum by (verb) (rate(apiserver_request_total{WHERE}[5m]))",
        title="Requests to the API server a second",
        unit="reqps",
        legend="{{verb}}",
    ),
    "samples lost": Query(
        promql="sum by (url) (rate(prometheus_remote_storage_samples_failed_total{WHERE}[5m]))",
        title="Samples that another place refuses, a second",
        unit="short",
        legend="{{url}}",
    ),
    "samples late": Query(
        # Not the newest sample in the queue less the newest that was sent: a full queue takes no more.
        promql=(
            "time() - max by (url) (max_over_time("
            "prometheus_remote_storage_queue_highest_sent_timestamp_seconds{WHERE}[5m]))"
        ),
        title="Age of the newest sample that another place has taken",
        unit="s",
        legend="{{url}}",
    ),
    "series": Query(
        promql="max(prometheus_tsdb_head_series{WHERE})", title="Series in Prometheus", unit="short"
    ),
    "history": Query(
        promql="max(prometheus_tsdb_storage_blocks_bytes{WHERE})",
        title="History on the disk",
        unit="bytes",
    ),
    "legacy restarts": Query(
        promql=(
            "sum by (job_namespace) (increase(training_operator_jobs_restarted_total{WHERE}[1h]))"
        ),
        title="PyTorchJobs restarted in an hour",
        unit="short",
        legend="{{job_namespace}}",
    ),
}
"""Name → query."""
