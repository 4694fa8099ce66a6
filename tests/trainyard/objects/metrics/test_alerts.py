"""Each alert fires by its fault and not without it, as Prometheus's own promtool judges."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rehearsal import paths
from tests.support.metrics import metrics_plan
from trainyard.objects.metrics.alerts import alerts, rules
from trainyard.objects.metrics.metrics import prometheus_config
from trainyard.objects.metrics.queries import QUERIES
from trainyard.operations.nodes.shell_job import shell_name
from trainyard.plans.jobs import SHELL_WORDS

PROMTOOL = paths.BIN / "promtool"
pytestmark = pytest.mark.skipif(
    not PROMTOOL.exists(),
    reason="needs promtool: `python -m rehearsal build --also promtool` builds it",
)
MINUTES = 60
"""After so long each alert is looked at."""

Series = dict[str, str]
"""Series → values, as promtool writes them, one every 30 seconds."""


def gpu(metric: str, rank: int, value: float, **labels: str) -> Series:
    """A GPU of a rank, always with the same value."""
    of = {
        "namespace": "team-vision",
        "run": "t5",
        "rank": f"node-{rank}",
        "node": f"n{rank}",
        "gpu": "0",
        "pool": "h100",
    } | labels
    return always(metric, value, **of)


def always(metric: str, value: float, **labels: str) -> Series:
    listed = ",".join(f'{name}="{of}"' for name, of in labels.items())
    return {f"{metric}{{{listed}}}": f"{value}x{2 * MINUTES}"}


def steadily(metric: str, start: float, step: float, **labels: str) -> Series:
    """A value that changes by `step` every 30 seconds."""
    [name] = always(metric, 0, **labels)
    return {name: f"{start}{step:+}x{2 * MINUTES}"}


def gang(*values: float) -> Series:
    """A gang whose ranks have SMs, tensor cores and memory at work to such a part."""
    return {
        name: value
        for metric in ("SM", "PIPE_TENSOR", "DRAM")
        for rank, work in enumerate(values)
        for name, value in gpu(f"DCGM_FI_PROF_{metric}_ACTIVE", rank, work).items()
    }


def of_run(run: str, series: Series) -> Series:
    """The series of another run."""
    return {name.replace('run="t5"', f'run="{run}"'): values for name, values in series.items()}


def spinning(tensor: float, dram: float) -> Series:
    """Ranks that hold SMs, as NCCL does while it waits."""
    return {
        **gpu("DCGM_FI_PROF_SM_ACTIVE", 0, 0.06),
        **gpu("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 0, tensor),
        **gpu("DCGM_FI_PROF_DRAM_ACTIVE", 0, dram),
    }


def clocks(*megahertz: float, work: float = 0.5) -> Series:
    """A gang whose ranks clock so high, and are as much at work."""
    return {
        name: value
        for rank, clock in enumerate(megahertz)
        for metric, is_ in (("DEV_SM_CLOCK", clock), ("PROF_SM_ACTIVE", work))
        for name, value in gpu(f"DCGM_FI_{metric}", rank, is_).items()
    }


def xid(number: int) -> Series:
    return gpu("DCGM_EXP_XID_ERRORS_COUNT", 0, 1, xid=str(number), window_size_in_ms="300000")


def pool(nodes: int) -> Series:
    of = {"nodepool": "h100", "resource_type": "nodes"}
    return always("karpenter_nodepools_usage", nodes, **of) | always(
        "karpenter_nodepools_limit", 8, **of
    )


def lustre(start: float, step: float) -> Series:
    of = {"device": "fs@tcp:/a", "fstype": "lustre", "node": "n0"}
    return steadily("node_filesystem_avail_bytes", start, step, **of) | always(
        "node_filesystem_size_bytes", 100e9, **of
    )


def answering(**values: int) -> Series:
    names = [target.job for target in metrics_plan().controllers]
    found: Series = {}
    for name in names:
        if (value := values.get(name.replace("-", "_"), 1)) >= 0:
            found |= always("up", value, job=name, node="s0")
    return found


def efa(timeouts: float, unresponsive: float = 0, *, devices: int = 1) -> Series:
    """A node of whose EFA devices each counts so many events a second."""
    a_second = {"retrans_timeout_events": timeouts, "unresponsive_remote_events": unresponsive}
    return {
        name: values
        for device in range(devices)
        for counter, events in a_second.items()
        for name, values in steadily(
            f"node_amazonefa_{counter}",
            7000,
            30 * events,
            node="n0",
            pool="h100",
            device=f"rdmap{device}s0",
            port="1",
        ).items()
    }


def launch_errors(method: str, step: float) -> Series:
    labels = {"error": "InsufficientCapacityError", "method": method, "controller": "nodeclaim"}
    return steadily("karpenter_cloudprovider_errors_total", 1, step, **labels)


def sick(state: str) -> Series:
    of = {"sick_node": "n0", "sick_pool": "h100", "reason": "NvidiaXID79Error", "state": state}
    return always("trainyard_repair_sick", 1, **of)


def unsaved(minutes: float, interval: float) -> Series:
    """A run whose work was so long in no checkpoint, when it is looked at; the clock begins at 0."""
    of = {"namespace": "team-vision", "run": "t5"}
    at = (MINUTES - 5 - minutes) * 60
    return always("trainyard_run_unsaved_since_seconds", at, **of) | always(
        "trainyard_run_checkpoint_interval_seconds", interval * 60, **of
    )


def lost(step: float) -> Series:
    url = "https://aps-workspaces/workspaces/ws-0/api/v1/remote_write"
    return steadily("prometheus_remote_storage_samples_failed_total", 0, step, url=url)


def node(*answers: str, kubelet: int = 1, **labels: str) -> Series:
    """A node whose kubelet answers Prometheus, and of whose exporters these do."""
    found = always("up", kubelet, job="containers", node="n0", **labels)
    for job in answers:
        found |= always("up", 1, job=job, node="n0", pool="h100")
    return found


def of_pool(*answers: str, kubelet: int = 1) -> Series:
    """A node of a pool with GPUs and EFA."""
    exporter = metrics_plan().efa
    assert exporter
    labels = {"gpu_manufacturer": "nvidia", "instance_type": exporter.instance_types[0]}
    return node(*answers, kubelet=kubelet, pool="h100", **labels)


def young(minutes: int) -> Series:
    """A node that joined so long before it is looked at, and pulls the images of its exporters."""
    [name] = of_pool()
    return {name: f"_x{2 * (MINUTES - 5 - minutes)} 1x{2 * (minutes + 5)}"}


def late(start: float, step: float) -> Series:
    """The moment of the newest sample that another place has taken; the clock begins at 0."""
    url = "https://aps-workspaces/workspaces/ws-0/api/v1/remote_write"
    sent = "prometheus_remote_storage_queue_highest_sent_timestamp_seconds"
    return steadily(sent, start, step, url=url)


def taken(reason: str, *, at_minute: int = MINUTES - 15) -> Series:
    """A counter that begins with its first event, beside a Karpenter that was there before."""
    before, after = 2 * at_minute, 2 * (MINUTES - at_minute)
    series = f'karpenter_nodeclaims_disrupted_total{{nodepool="h100",reason="{reason}"}}'
    return {series: f"_x{before} 1x{after}"} | always("up", 1, job="karpenter", node="s0")


NEW_PROMETHEUS = {
    series: f"_x{2 * (MINUTES - 15)} {'3x60' if 'karpenter_' in series else '1x60'}"
    for series in taken("spot_interrupted")
}
"""It sees old events, and Karpenter, for the first time."""

CASES: dict[str, tuple[tuple[Series, ...], tuple[Series, ...]]] = {
    "Watchdog": (({},), ()),
    "NodeReplaced": ((sick("replacing"), sick("draining")), ({}, sick("held"))),
    "NodeNotReplaced": ((sick("held"),), ({}, sick("replacing"))),
    "NodeSilent": ((sick("waiting"),), ({}, sick("held"))),
    "NodeNotGone": ((sick("replacing"),), ({}, sick("draining"))),
    "RunStandsStill": (
        (gang(0, 0), spinning(0, 0.001), of_run("shell-game", gang(0, 0))),
        (
            *(gang(0.4, 0.4), gang(0, 0.4), spinning(0, 0.3), spinning(0.2, 0)),
            *(of_run(shell_name(word), gang(0)) for word in SHELL_WORDS),
        ),
    ),
    "HalfGangIdle": (
        (gang(0, 0.5), gang(0.06, 0, 0.06)),
        (gang(0.4, 0.5), gang(0, 0), gang(0.3, 0.5), gang(0.06, 0.06)),
    ),
    "RankSlow": (
        (clocks(1980, 1980, 1400), clocks(1980, 1970, 1960, 1200)),
        (clocks(1980, 1980, 1830), clocks(1980, 1980, 345, work=0), clocks(1400, 1400)),
    ),
    "CheckpointOld": (
        (unsaved(25, 10),),
        ({}, unsaved(15, 10), dict([*unsaved(25, 10).items()][:1])),
    ),
    "GpuXidApplication": ((xid(31),), (xid(79), xid(43), xid(0))),
    "GpuXidReset": ((xid(48), xid(95)), (xid(31), xid(63))),
    "GpuXidNVLink": ((xid(74), xid(147)), (xid(79),)),
    "GpuXidLost": ((xid(79),), (xid(74), xid(7))),
    "GpuXidSupport": ((xid(54),), (xid(154),)),
    "GpuMemoryBroken": (
        (
            gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0, 1),
            gpu("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", 0, 2),
        ),
        (
            gpu("DCGM_FI_DEV_ROW_REMAP_FAILURE", 0, 0),
            gpu("DCGM_FI_DEV_ROW_REMAP_PENDING", 0, 1),
            gpu("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 0, 9),
        ),
    ),
    "EfaRetransmits": (
        (efa(5), efa(0, 5), efa(9, 9), dict([*efa(0, 5).items()][1:])),
        ({}, efa(0), efa(0.2, 0.2), efa(0.5, devices=32)),
    ),
    "ExporterDown": (
        (
            *(always("up", 0, job="gpus", node="n0"), always("up", 0, job="efa", node="n0")),
            *(of_pool("nodes", "efa"), of_pool("gpus", "efa"), of_pool("nodes", "gpus")),
            *(of_pool(), young(12), node(pool="cpus", instance_type="c7i.8xlarge")),
        ),
        (
            *(always("up", 1, job="gpus", node="n0"), always("up", 0, job="karpenter", node="s0")),
            *(of_pool("nodes", "gpus", "efa"), of_pool(kubelet=0), young(8)),
            node("nodes", pool="cpus", instance_type="c7i.8xlarge"),
            *(node(instance_type="m7i.large"), node(gpu_manufacturer="nvidia")),
        ),
    ),
    "NodesCannotLaunch": (
        (launch_errors("Create", 1),),
        (launch_errors("Create", 0), launch_errors("Get", 1)),
    ),
    "NodesTakenBack": (
        (taken("spot_interrupted"), taken("capacity_reservation_interrupted")),
        ({}, taken("empty"), taken("spot_interrupted", at_minute=20), NEW_PROMETHEUS),
    ),
    "ReservationEnds": ((pool(8), pool(1)), ({}, pool(0))),
    "BudgetOfTheDay": ((pool(8),), (pool(1), pool(0))),
    "PoolFull": ((pool(8),), (pool(7), pool(0))),
    "StoreFull": ((lustre(5e9, 0),), (lustre(50e9, 0),)),
    "StoreFills": ((lustre(60e9, -0.4e9),), (lustre(60e9, -1e6), lustre(5e9, 0))),
    "SamplesLost": ((lost(1),), (lost(0), {})),
    "SamplesLate": ((late(0, 0), late(2000, 0)), (late(0, 30), late(-300, 30), late(3000, 0), {})),
    "ControllerDown": (
        (answering(karpenter=0), answering(kueue=-1)),
        (answering(),),
    ),
}
"""Alert → faults of which each makes it fire, and states in which it is silent."""


def promtool(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [str(PROMTOOL), *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def _firing(alert: str, series: Series, *, fires: bool) -> dict[str, Any]:
    """Prometheus keeps what it judges in the series ALERTS."""
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) > bool 0'
    return {
        "name": f"{alert} {'fires' if fires else 'is silent'}: {[*series][:1]}",
        "interval": "30s",
        "input_series": [{"series": name, "values": of} for name, of in series.items()],
        "promql_expr_test": [
            {
                "expr": firing,
                "eval_time": f"{MINUTES - 5}m",
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules")
    (made / "rules.json").write_text(rules(metrics_plan()))
    return made


def test_every_alert_has_faults() -> None:
    assert {*CASES} == {alert.name for alert in alerts(metrics_plan())}
    assert all(fires for fires, _ in CASES.values())


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_by_its_fault_and_not_without_it(name: str, tmp_path: Path) -> None:
    """Its rule is alone: promtool would evaluate all others, too, in each case."""
    whole = json.loads(rules(metrics_plan()))
    for group in whole["groups"]:
        group["rules"] = [rule for rule in group["rules"] if rule["alert"] == name]
    assert any(group["rules"] for group in whole["groups"])
    (tmp_path / "rules.json").write_text(json.dumps(whole))
    tests = [
        _firing(name, series, fires=fires)
        for fires, several in zip((True, False), CASES[name], strict=True)
        for series in several
    ]
    cases = {"rule_files": ["rules.json"], "evaluation_interval": "30s", "tests": tests}
    (tmp_path / "fires.json").write_text(json.dumps(cases))
    promtool(tmp_path, "test", "rules", "fires.json")


@pytest.mark.parametrize(("ends", "fires"), [(7200, True), (3000, False), (40_000, False)])
def test_the_end_of_a_reservation_is_told_hours_before_and_not_after(
    tmp_path: Path, ends: int, *, fires: bool
) -> None:
    (tmp_path / "rules.json").write_text(rules(replace(metrics_plan(), ends=(("h100", ends),))))
    tests = [_firing("ReservationEnds", pool(8), fires=fires)]
    whole = {"rule_files": ["rules.json"], "evaluation_interval": "30s", "tests": tests}
    (tmp_path / "ends.json").write_text(json.dumps(whole))
    promtool(tmp_path, "test", "rules", "ends.json")


def test_a_still_run_is_named_with_the_word_that_ends_it(folder: Path) -> None:
    said = {
        "summary": (
            "run t5 in team-vision stands still: no GPU of its ranks has computed for 15 minutes"
        ),
        "fix": (
            "trainyard logs t5 shows what the ranks wait for; trainyard stop t5 ends the run, which"
            " resumes from its last checkpoint"
        ),
    }
    labels = {"severity": "critical", "namespace": "team-vision", "run": "t5"}
    expected = {"exp_labels": labels, "exp_annotations": said}
    test = {
        "interval": "30s",
        "input_series": [{"series": s, "values": v} for s, v in gang(0, 0).items()],
        "alert_rule_test": [
            {"eval_time": "30m", "alertname": "RunStandsStill", "exp_alerts": [expected]}
        ],
    }
    (folder / "says.json").write_text(json.dumps({"rule_files": ["rules.json"], "tests": [test]}))
    promtool(folder, "test", "rules", "says.json")


@pytest.mark.parametrize(
    ("alert", "series", "says"),
    [
        (
            "HalfGangIdle",
            gang(0.06, 0.06, 0),
            "rank node-2 of run t5 in team-vision, on node n2, is",
        ),
        (
            "RankSlow",
            clocks(1980, 1980, 1400),
            "rank node-2 of run t5 in team-vision, on node n2, has",
        ),
    ],
)
def test_a_rank_that_hangs_or_is_slow_is_named_within_5_minutes(
    folder: Path, alert: str, series: Series, says: str
) -> None:
    [rule] = [each for each in alerts(metrics_plan()) if each.name == alert]
    labels = {"namespace": "team-vision", "run": "t5", "rank": "node-2", "node": "n2"}
    values = {"run": "t5", "rank": "node-2", "node": "n2", "namespace": "team-vision"}
    summary, fix = rule.says, rule.fix
    for name, value in values.items():
        summary, fix = (text.replace(f"{{{{ $labels.{name} }}}}", value) for text in (summary, fix))
    assert summary.startswith(says)
    expected = {
        "exp_labels": {"severity": "warning", **labels},
        "exp_annotations": {"summary": summary, "fix": fix},
    }
    test = {
        "interval": "30s",
        "input_series": [{"series": s, "values": v} for s, v in series.items()],
        "alert_rule_test": [{"eval_time": "5m", "alertname": alert, "exp_alerts": [expected]}],
    }
    file = folder / f"{alert}.json"
    file.write_text(json.dumps({"rule_files": ["rules.json"], "tests": [test]}))
    promtool(folder, "test", "rules", file.name)


def test_a_link_of_efa_that_recovers_within_minutes_is_silent(folder: Path) -> None:
    """A gang whose node is gone waits for it until it starts anew."""
    [name, *_] = efa(9)
    tests = [
        _firing("EfaRetransmits", {name: f"0x{before} 900+900x4 4500x{MINUTES}"}, fires=False)
        for before in range(2 * MINUTES - 26, 2 * MINUTES - 18)
    ]
    whole = {"rule_files": ["rules.json"], "evaluation_interval": "30s", "tests": tests}
    (folder / "recovers.json").write_text(json.dumps(whole))
    promtool(folder, "test", "rules", "recovers.json")


def test_prometheus_reads_every_rule_and_every_query(folder: Path) -> None:
    asked = [
        {"record": f"query:{number}", "expr": query.where('node="n0"')}
        for number, query in enumerate(QUERIES.values())
    ]
    groups = {"groups": [{"name": "queries", "rules": asked}]}
    (folder / "queries.json").write_text(json.dumps(groups))
    promtool(folder, "check", "rules", "rules.json")
    promtool(folder, "check", "rules", "queries.json")


def test_prometheus_reads_its_configuration(folder: Path) -> None:
    (folder / "prometheus.yml").write_text(prometheus_config(metrics_plan()))
    promtool(folder, "check", "config", "--syntax-only", "prometheus.yml")
