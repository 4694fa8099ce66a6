"""What a person sees."""

import re
from typing import Any

from development import progress
from development.progress import Display, Stages
from tests.support.recording import CHECKOUT
from trainyard.catalog.aws.latencies import STAGES
from trainyard.replacing.urn import title_of

VPC = "urn:pulumi:dev::trainyard::trainyard:network:Network$aws:ec2/vpc:Vpc::network"


class Clock:
    """Time that passes when told."""

    def __init__(self, *explain: progress.Explain) -> None:
        self.now, self.lines = 0.0, list[str]()
        self.stages = Stages(Display(self.lines.append, lambda: self.now), *explain)

    def after(self, seconds: float, *events: dict[str, Any]) -> str:
        self.now += seconds
        self.stages.consume(list(events))
        return self.lines[-1] if self.lines else ""


def _step(kind: str, urn: str = VPC, *, op: str = "create", custom: bool = True) -> dict[str, Any]:
    return {kind: {"metadata": {"op": op, "urn": urn, "new": {"custom": custom}}}}


def test_a_stage_says_when_it_begins_and_what_it_has_done():
    clock = Clock()
    assert clock.after(61, _step("resourcePreEvent")) == "  1:01  network       begins"
    clock.after(4, _step("resOutputsEvent"))
    assert clock.after(3) == "  1:08  network       1 create in 0:04"


def test_a_stage_that_goes_on_says_only_what_is_new():
    clock = Clock()
    clock.after(0, _step("resourcePreEvent"))
    clock.after(4, _step("resOutputsEvent"))
    assert clock.after(3).endswith("network       1 create in 0:04")
    clock.after(1, _step("resourcePreEvent", VPC + "-b"))
    clock.after(2, _step("resOutputsEvent", VPC + "-b"))
    assert clock.after(3).endswith("network       1 create in 0:02")
    assert clock.after(3).endswith("network       1 create in 0:02"), "and no line after it"
    assert len(clock.lines) == 3


def test_the_duration_on_aws_stands_beside_the_first_update_alone():
    clock = Clock()
    clock.after(0, _step("resourcePreEvent"))
    clock.after(4, _step("resOutputsEvent"))
    first, later = (
        progress.stage_table(clock.stages.stages, 0, first=first) for first in (True, False)
    )
    assert "ON AWS" in first[0] and "about" in first[1]
    assert later == ["  STAGE    HERE  RESOURCES", "  network  0:04  1 create"]


def test_every_stage_that_was_announced_has_a_row_at_the_end():
    """Those of teams, history, messages, logs, metrics, queues and the budget had none."""
    clock = Clock()
    for stage, (kind, *_) in progress.COMPONENTS.items():
        urn = f"urn:pulumi:dev::trainyard::trainyard:{kind}$aws:ec2/vpc:Vpc::{stage}"
        assert progress.stage_of(urn) == stage
        for event in ("resourcePreEvent", "resOutputsEvent"):
            clock.after(1, _step(event, urn))
    clock.after(1, _step("resourcePreEvent", "urn:pulumi:dev::t::pulumi:providers:aws::aws"))
    head, *rows = progress.stage_table(clock.stages.stages, 0, first=True)
    assert "ON AWS" in head and len(rows) == len(progress.COMPONENTS)
    for stage, row in zip(progress.COMPONENTS, rows, strict=True):
        assert row.strip().startswith(stage)
        assert ("about" in row) == (stage in STAGES) != ("not measured" in row)


def test_every_component_of_the_recorded_stacks_has_a_stage_with_a_name_for_people():
    kinds = {
        kind
        for file in sorted((CHECKOUT / "tests/golden").glob("*.*"))
        for kind in re.findall(r"trainyard:[a-z]+:[A-Z][A-Za-z0-9]*", file.read_text())
    }
    stages = {kind: progress.stage_of(f"urn:pulumi:s::p::{kind}$a:b:C::n") for kind in kinds}
    assert len(stages) > 30
    assert {kind: s for kind, s in stages.items() if s not in progress.COMPONENTS} == {}


def test_silence_is_broken_with_what_is_waited_for():
    clock = Clock()
    clock.after(0, _step("resourcePreEvent"), _step("resourcePreEvent", VPC + "-b"))
    assert clock.after(9) == "  0:09  network       waiting 0:09 for Vpc network, and 1 more"


def test_a_run_that_others_hold_is_waited_for_with_the_reason():
    """`waiting 2:06 for TrainJob tune-3` did not tell a turn in its sweep from a wedge."""
    clock = Clock()
    urn = "urn:pulumi:dev::p::trainyard:jobs:Jobs$kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob::tune-3"
    clock.after(0, _step("resourcePreEvent", urn))
    clock.after(0, _said("tune-3 begins after one of tune-1, tune-2 has ended"))
    assert clock.after(9) == (
        "  0:09  jobs          waiting 0:09 for TrainJob tune-3: it begins after one of tune-1, tune-2 has ended"
    )


def test_a_long_message_is_repeated_in_short():
    clock = Clock()
    clock.after(0, _said(f"this update starts a run of mine: {'long ' * 50}"))
    said = clock.after(9)
    assert said.endswith(" …, for 0:09") and len(said) < 120


def test_a_helm_release_that_takes_long_is_said_with_its_pods_that_are_not_ready():
    """`waiting 12:00 for Release kueue` named none of them."""
    asked, why = list[tuple[str, str]](), ["pod kueue-7x: the image cannot be pulled"]

    def explain(name: str, namespace: str) -> list[str]:
        asked.append((name, namespace))
        return [*why]

    clock = Clock(explain)
    urn = "urn:pulumi:dev::p::trainyard:queues:Queues$kubernetes:helm.sh/v3:Release::kueue"
    begins = _step("resourcePreEvent", urn)
    inputs = {"name": "kueue", "namespace": "kueue-system"}
    begins["resourcePreEvent"]["metadata"] |= {"type": progress.RELEASE}
    begins["resourcePreEvent"]["metadata"]["new"] |= {"inputs": inputs}
    clock.after(0, begins)
    clock.after(30)
    assert asked == [], "that is usual"
    clock.after(60)
    assert asked == [("kueue", "kueue-system")]
    assert [line.split(maxsplit=2)[2] for line in clock.lines[-2:]] == [
        "waiting 1:30 for Release kueue",
        "Release kueue: pod kueue-7x: the image cannot be pulled",
    ]
    assert clock.after(10).endswith("waiting 1:40 for Release kueue"), "it is no news"
    why[:] = ["pod kueue-7x: it starts"]
    assert clock.after(10).endswith("Release kueue: pod kueue-7x: it starts")
    why.clear()
    assert clock.after(10).endswith("waiting 2:00 for Release kueue")


def test_silence_while_the_program_waits_repeats_what_it_said_last():
    clock = Clock()
    assert clock.after(9) == "  0:09  engine        is working"
    clock.after(0, _said("training/mine: 2 Running\n    and why"))
    assert clock.after(9) == "  0:18  program       training/mine: 2 Running, for 0:09"


def test_resources_that_did_not_change_and_components_are_no_work():
    clock = Clock()
    clock.after(0, _step("resourcePreEvent", op="same"), _step("resourcePreEvent", custom=False))
    assert clock.stages.stages == {}


def test_time_in_which_two_resources_were_made_at_once_counts_once():
    clock = Clock()
    clock.after(0, _step("resourcePreEvent"))
    clock.after(2, _step("resourcePreEvent", VPC + "-b"))
    clock.after(8, _step("resOutputsEvent"))
    clock.after(5, _step("resOutputsEvent", VPC + "-b"))
    assert clock.stages.stages["network"].busy == 15


def test_what_failed_is_named_with_its_message():
    clock = Clock()
    clock.after(
        1, {"diagnosticEvent": {"severity": "error", "urn": VPC, "message": "VpcLimitExceeded\n"}}
    )
    assert clock.stages.errors == [("Vpc network", "VpcLimitExceeded")]


def _said(message: str) -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": "info", "urn": "", "message": message}}


def _error(message: str, urn: str = "") -> dict[str, Any]:
    return {"diagnosticEvent": {"severity": "error", "urn": urn, "message": message}}


def test_the_last_words_of_ranks_are_shown_whole_and_once():
    clock = Clock()
    words = "TrainJob training/mine is Failed; its ranks said last:\n" + "line\n" * 25
    stack = "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"
    clock.after(1, *(_error(each, stack) for each in (words, *progress.ENDED)))
    [(who, shown)] = clock.stages.errors
    assert who == "program" and shown.count("line") == 25


def test_an_error_that_the_engine_repeats_is_shown_once():
    clock, stack = Clock(), "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"
    refused = "storage.scratch: must stay in its zone"
    clock.after(1, _error(refused, stack), _error(refused), _error(refused, VPC))
    assert clock.stages.errors == [("program", refused), ("Vpc network", refused)]


def test_of_a_traceback_the_end_is_shown_and_of_a_plugins_error_the_beginning():
    clock = Clock()
    lines = "\n".join(map(str, range(30)))
    clock.after(1, _error(f"{progress.TRACEBACK}:\n{lines}"), _error(lines, VPC))
    program, plugin = (shown for _, shown in clock.stages.errors)
    assert program.endswith("28\n    29") and plugin.endswith("4\n    …")


def test_what_the_program_says_is_shown_and_what_providers_say_is_not():
    clock = Clock()
    said = {"severity": "info", "message": "t5-large starts a run\n"}
    stack = "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"
    for event in (said, said | {"urn": stack}, said | {"urn": VPC, "message": "waits for a route"}):
        clock.after(1, {"diagnosticEvent": event})
    assert [line.split(maxsplit=1)[1] for line in clock.lines] == [
        "program       t5-large starts a run"
    ] * 2


def test_a_component_that_is_in_no_table_is_a_stage_of_its_own():
    assert (
        progress.stage_of("urn:pulumi:dev::p::trainyard:new:Queues$aws:sqs/queue:Queue::q")
        == "Queues"
    )


def test_each_warning_is_listed_once_in_short_and_its_fix_stands_among_the_commands():
    clock = Clock()
    long = "environment.zone_id [Pulumi.dev.yaml:3]: " + "it is not set, " * 30
    role = (
        "environment.teams.vision.role_arn: must be a role that exists; got a. Fix: run `aws iam`"
    )
    said = [
        {"diagnosticEvent": {"severity": severity, "message": f"{text}\n"}}
        for severity, text in (
            ("warning", long),
            ("debug", "registering"),
            ("warning", role),
            ("warning", long),
        )
    ]
    clock.stages.consume([*said, {"cancelEvent": {}}])
    assert clock.stages.warnings == progress.warnings_in(said) == [long.strip(), role]
    title, lines = progress.shown_warnings(clock.stages.warnings)
    assert title == "2 warnings" and progress.shown_warnings([role])[0] == "1 warning"
    assert lines[0].startswith("  environment.zone_id [Pulumi.dev.yaml:3]: it is not set, it")
    assert lines[0].endswith(" …") and 150 < len(lines[0]) <= 202
    assert lines[1] == "  environment.teams.vision.role_arn: must be a role that exists; got a"


def test_a_warning_about_the_update_is_printed_whole_because_no_check_prints_it() -> None:
    grows = f"environment.storage.scratch: this update grows scratch: {'x ' * 200}end"
    assert progress.shown_warnings([grows])[1] == [f"  {grows}"]


def test_a_warning_about_what_the_update_ends_is_printed_before_it_does():
    clock = Clock()
    ends = "environment.jobs.mine [Pulumi.dev.yaml:9]: this update ends its run and starts another one: 1 → 2"
    other = "environment.zone_id [Pulumi.dev.yaml:3]: it is not set"
    clock.stages.consume(
        [
            {"diagnosticEvent": {"severity": "warning", "message": text}}
            for text in (other, ends, ends)
        ]
    )
    [line] = clock.lines
    assert line.endswith(ends)


def test_an_object_has_the_title_that_the_words_of_the_tool_give_it():
    assert progress.resource(VPC) == title_of(VPC) == "Vpc network"
    assert progress.resource("") == "program"
