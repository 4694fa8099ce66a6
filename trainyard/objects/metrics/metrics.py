"""Plans of metrics, and the configuration of Prometheus that follows: its targets, and the series
that it keeps.

Queries: queries.py. Alerts: alerts.py. Dashboards: dashboards.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainyard.objects.jobs.pod_template import POOL
from trainyard.objects.metrics.alertmanager import APP as ALERTMANAGER
from trainyard.objects.metrics.alertmanager import PORT as ALERTMANAGER_PORT
from trainyard.objects.metrics.alertmanager import AlertmanagerPlan
from trainyard.objects.metrics.managed_prometheus import ManagedPrometheusPlan, remote_write
from trainyard.plans.jobs import Spec
from trainyard.plans.push_gateway import APP as PUSH_GATEWAY
from trainyard.plans.push_gateway import NAMESPACE, PushGatewayPlan
from trainyard.plans.push_gateway import PORT as PUSH_PORT
from trainyard.plans.push_gateway import SERIES as PUSHED_SERIES

EXPORTERS = "kube-system"
"""Namespace of the exporters: that of Prometheus admits no pod with rights on its node."""
PORT, GPU_PORT, NODE_PORT, EFA_PORT = 9090, 9400, 9100, 8080
FOLDER = "/etc/prometheus"
"""Folder of Prometheus's files."""
RULES = "rules.json"
INTERVAL_SECONDS = 30
"""The GPU exporter reads its GPUs as often (dcgm-exporter, pkg/cmd/app.go): faster shows nothing more."""
VIEW = f"kubectl --namespace {NAMESPACE} port-forward service/prometheus {PORT}"
"""Command that shows Prometheus at http://localhost:9090."""
GPUS, GPUS_BY_DRIVER, NODES, EFA = "gpus", "gpus-by-driver", "nodes", "efa"
"""Names of the exporters: their label `job`, and the label of their pods."""
APP = "app.kubernetes.io/name"
GPU_MAKER, INSTANCE_TYPE = (
    "karpenter.k8s.aws/instance-gpu-manufacturer",
    "node.kubernetes.io/instance-type",
)
"""Labels of nodes by which exporters are on them, beside that of their pool."""

_GPU_FIELDS = """
DCGM_FI_DEV_SM_CLOCK,gauge,SM clock in MHz
DCGM_FI_DEV_GPU_TEMP,gauge,temperature in C
DCGM_FI_DEV_MEMORY_TEMP,gauge,temperature of the memory in C
DCGM_FI_DEV_POWER_USAGE,gauge,power in W
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION,counter,energy since boot in mJ
DCGM_FI_DEV_PCIE_REPLAY_COUNTER,counter,PCIe retries
DCGM_FI_DEV_GPU_UTIL,gauge,share of time with a kernel in percent
DCGM_FI_DEV_FB_USED,gauge,memory in use in MiB
DCGM_FI_DEV_FB_FREE,gauge,free memory in MiB
DCGM_FI_DEV_THERMAL_VIOLATION,counter,time throttled by heat
DCGM_FI_DEV_POWER_VIOLATION,counter,time throttled by power
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL,counter,double bit errors since boot
DCGM_FI_DEV_ECC_SBE_VOL_TOTAL,counter,single bit errors since boot
DCGM_FI_DEV_ROW_REMAP_FAILURE,gauge,1 where a row of memory could not be replaced
DCGM_FI_DEV_ROW_REMAP_PENDING,gauge,1 where a row is replaced at the next reset
DCGM_FI_PROF_GR_ENGINE_ACTIVE,gauge,share of time with any work
DCGM_FI_PROF_SM_ACTIVE,gauge,share of SMs at work
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE,gauge,share of time with tensor cores at work
DCGM_FI_PROF_DRAM_ACTIVE,gauge,share of time with memory at work
DCGM_FI_PROF_NVLINK_TX_BYTES,gauge,NVLink bytes a second sent
DCGM_FI_PROF_NVLINK_RX_BYTES,gauge,NVLink bytes a second received
DCGM_EXP_XID_ERRORS_COUNT,gauge,Xids of the last 5 minutes by number
"""
"""Fields of DCGM as its exporter's file of counters wants them: name, type, help
(go-dcgm const_fields.go at 1.4601.1; DCGM_EXP is the exporter's own)."""
GPU_COUNTERS = _GPU_FIELDS.lstrip()
NODE_COLLECTORS = ("filesystem", "loadavg", "meminfo", "pressure")
"""Collectors of node_exporter that run; the others are off."""

POD_NAMES = {
    r"(.+)-(node|launcher)-\d+-(\d+)-[a-z0-9]{5}": ("$1", "$2-$3"),
    r"(.+)-(master|worker|chief|evaluator|ps)-(\d+)": ("$1", "$2-$3"),
}
"""Names of the pods of a TrainJob (JobSet) and of a job of the training-operator → the run and the rank of its
node."""

NOT_PUSHED = (
    "up|process_resident_memory_bytes|(ALERTS|scrape_|DCGM_|apiserver_|container_|controller_runtime_"
    "|karpenter_|kueue_|node_|prometheus_|trainyard_|training_operator_|workqueue_).*"
)
"""Names that Prometheus takes from no job, as a regular expression: queries and alerts read them, and a pushed
figure keeps the labels that a team gave it (Prometheus 3.14, scrape/scrape.go, mutateSampleLabels)."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A program with metrics, in pods."""

    job: str
    """Name of the program: the label `job` of its series."""
    namespace: str
    label: str
    """Label of its pods and its value, as name=value, or a selector of several values."""
    port: int
    secure: bool = False
    """The target asks the API server who may read its metrics."""
    unread: str | None = None
    """Names of its metrics that Prometheus drops, as a regular expression. None: it keeps all."""


@dataclass(frozen=True, kw_only=True)
class DayBudget:
    """Most that nodes of pools can cost within 24 hours."""

    dollars: float
    prices: tuple[tuple[str, str], ...]
    """Pool and USD an hour of one of its nodes."""


@dataclass(frozen=True, kw_only=True)
class EfaExporter:
    """A program of ours on nodes with EFA: trainyard/in_cluster/efa."""

    image: str
    files: Mapping[str, str]
    """Name → text of its program."""
    instance_types: tuple[str, ...]
    """Instance types of these nodes."""


@dataclass(frozen=True, kw_only=True)
class GpuExporter:
    """NVIDIA's exporter on nodes with GPUs."""

    name: str
    """GPUS, or GPUS_BY_DRIVER beside it."""
    instance_types: tuple[str, ...] = ()
    """Instance types of these nodes; none: all with GPUs."""
    dcgm_port: int | None = None
    """Port of a DCGM server that each of these nodes has already. None: the exporter brings its own."""


@dataclass(frozen=True, kw_only=True)
class GrafanaPlan:
    """Grafana: grafana.py."""

    image: str
    files: Mapping[str, str]
    """Path below its folder → text."""
    millicpus: int
    memory_mib: int


@dataclass(frozen=True, kw_only=True)
class MetricsPlan:
    """Prometheus and its exporters."""

    stack: str
    """Becomes the label `stack` of every sample that leaves the cluster."""
    image: str
    gpu_image: str
    node_image: str
    gpus: tuple[GpuExporter, ...]
    efa: EfaExporter | None
    """None: no pool has EFA."""
    controllers: tuple[Target, ...]
    retention_days: int
    remote_write_url: str | None
    managed: ManagedPrometheusPlan | None
    """None: AWS keeps no samples."""
    ends: tuple[tuple[str, int], ...]
    """Pool and end of its reservation or Capacity Block, in Unix seconds."""
    budget: DayBudget | None
    """None: no alert says what nodes cost."""
    alerts: AlertmanagerPlan | None
    """None: alerts stand in Prometheus, and nobody is told."""
    push_gateway: PushGatewayPlan | None
    """None: jobs push nothing."""
    grafana: GrafanaPlan | None
    """None: pages are shown elsewhere."""
    series: int
    """Estimate for all pools full."""
    memory_mib: int
    millicpus: int
    disk_gib: int
    """Size of the history, on the disk of its node."""


def prometheus_config(plan: MetricsPlan, workspace: str | None = None) -> str:
    """prometheus.yml, as JSON, which is YAML. `workspace`: endpoint of that of `plan.managed`."""
    config: Spec = {
        "global": {
            "scrape_interval": f"{INTERVAL_SECONDS}s",
            "evaluation_interval": f"{INTERVAL_SECONDS}s",
            "external_labels": {"stack": plan.stack},
        },
        "rule_files": [f"{FOLDER}/{RULES}"],
        "scrape_configs": [
            _own(),
            *map(_controller, plan.controllers),
            _exporter(GPUS, GPU_PORT, *(each.name for each in plan.gpus)),
            _exporter(NODES, NODE_PORT),
            *([_exporter(EFA, EFA_PORT)] if plan.efa else []),
            _containers(),
            _api_server(),
            *([_pushed()] if plan.push_gateway else []),
        ],
    }
    if plan.alerts:
        config["alerting"] = {"alertmanagers": [_alertmanager()]}
    if receivers := [*_receivers(plan, workspace)]:
        config["remote_write"] = receivers
    return json.dumps(config, indent=1, sort_keys=True)


def _receivers(plan: MetricsPlan, workspace: str | None) -> Iterator[Spec]:
    """Receivers of every sample."""
    if plan.remote_write_url:
        yield {"url": plan.remote_write_url}
    if plan.managed and workspace:
        yield remote_write(workspace, plan.managed.region)


def _alertmanager() -> Spec:
    """Its running pod."""
    target = Target(
        job=ALERTMANAGER,
        namespace=NAMESPACE,
        label=f"{APP}={ALERTMANAGER}",
        port=ALERTMANAGER_PORT,
    )
    return {key: value for key, value in _pods(target).items() if key != "job_name"}


def _pushed() -> Spec:
    """Scrape job for what jobs have pushed, with the labels that they gave it."""
    target = Target(
        job=PUSH_GATEWAY, namespace=NAMESPACE, label=f"{APP}={PUSH_GATEWAY}", port=PUSH_PORT
    )
    return {
        **_pods(target),
        "honor_labels": True,
        "sample_limit": PUSHED_SERIES,
        "metric_relabel_configs": [_if("drop", "__name__", NOT_PUSHED)],
    }


def _own() -> Spec:
    return {"job_name": "prometheus", "static_configs": [{"targets": [f"localhost:{PORT}"]}]}


def _controller(target: Target) -> Spec:
    drops = [_if("drop", "__name__", target.unread)] if target.unread else []
    return {
        **_pods(target),
        **(_authorized() if target.secure else {}),
        **({"metric_relabel_configs": drops} if drops else {}),
    }


def _pods(target: Target) -> Spec:
    """The running pods of a program, by label: a chart need not name the port."""
    return {
        "job_name": target.job,
        "kubernetes_sd_configs": [
            {
                "role": "pod",
                "namespaces": {"names": [target.namespace]},
                "selectors": [{"role": "pod", "label": target.label}],
                "attach_metadata": {"node": True},
            }
        ],
        "relabel_configs": [
            _if("keep", "__meta_kubernetes_pod_phase", "Running"),
            {
                "source_labels": ["__meta_kubernetes_pod_ip"],
                "target_label": "__address__",
                "replacement": f"$1:{target.port}",
            },
            _copied("__meta_kubernetes_pod_node_name", "node"),
            _of_node(POOL, "pool"),
        ],
    }


def _of_node(name: str, label: str) -> Spec:
    """A label of the node, as a label of the target."""
    return _copied(f"__meta_kubernetes_node_label_{name.translate(_UNDERSCORES)}", label)


_UNDERSCORES = str.maketrans("./-", "___")
"""A label of Kubernetes as Prometheus writes it."""


def _exporter(job: str, port: int, *names: str) -> Spec:
    """An exporter on nodes, or several of one kind. Its series of a GPU name the pod that has the GPU."""
    apps = [*map(exporter, names or (job,))]
    label = f"{APP}={apps[0]}" if len(apps) == 1 else f"{APP} in ({', '.join(apps)})"
    target = Target(job=job, namespace=EXPORTERS, label=label, port=port)
    return {**_pods(target), "metric_relabel_configs": run_labels()}


def exporter(name: str) -> str:
    """Name of an exporter's DaemonSet, and the value of its label APP."""
    return f"trainyard-{name}"


def _containers() -> Spec:
    """Scrape job for the use of resources by containers, as the kubelet of each node counts it. Its `up`
    says which exporters the node must have; series of containers do without these labels."""
    return {
        "job_name": "containers",
        "metrics_path": "/metrics/cadvisor",
        "kubernetes_sd_configs": [{"role": "node"}],
        **_authorized(),
        "relabel_configs": [
            _copied("__meta_kubernetes_node_name", "node"),
            _of_node(POOL, "pool"),
            _of_node(GPU_MAKER, "gpu_manufacturer"),
            _of_node(INSTANCE_TYPE, "instance_type"),
        ],
        "metric_relabel_configs": [
            _if(
                "keep",
                "__name__",
                # Not oom_events_total: a container that is killed for memory leaves with its counter
                # (google/cadvisor#3015).
                "container_(memory_working_set_bytes|cpu_usage_seconds_total)",
            ),
            _if("drop", "container", ""),
            {
                "regex": "id|name|image|pool|gpu_manufacturer|instance_type",
                "action": "labeldrop",
            },
            *run_labels(),
        ],
    }


def _api_server() -> Spec:
    """By the EndpointSlice that EKS keeps for the Service kubernetes; the rehearsal has none."""
    return {
        "job_name": "kube-apiserver",
        "kubernetes_sd_configs": [
            {"role": "endpointslice", "namespaces": {"names": ["default"]}},
        ],
        **_authorized(),
        "relabel_configs": [_if("keep", "__meta_kubernetes_service_name", "kubernetes")],
        "metric_relabel_configs": [
            _if("keep", "__name__", "apiserver_(request_total|current_inflight_requests)"),
        ],
    }


def run_labels() -> list[Spec]:
    """Labels `run` and `rank` from the name of a job's pod."""
    return [
        {
            "source_labels": ["pod"],
            "regex": name,
            "target_label": label,
            "replacement": replacement,
        }
        for name, labels in POD_NAMES.items()
        for label, replacement in zip(("run", "rank"), labels, strict=True)
    ]


def _authorized() -> Spec:
    """In the name of Prometheus's service account. Controllers and kubelets sign their certificates
    themselves."""
    return {
        "scheme": "https",
        "tls_config": {"insecure_skip_verify": True},
        "authorization": {
            "credentials_file": "/var/run/secrets/kubernetes.io/serviceaccount/token"
        },
    }


def _if(action: str, label: str, value: str) -> Spec:
    return {"source_labels": [label], "regex": value, "action": action}


def _copied(source: str, label: str) -> Spec:
    return {"source_labels": [source], "target_label": label}
