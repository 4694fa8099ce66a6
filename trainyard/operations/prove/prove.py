"""`trainyard prove`: an hour on an account, cheapest questions first, within a limit of dollars.

The steps are a table (steps.py). Each is priced and asked for; what it did, saw and was refused is in
prove.json from the moment that it begins, so that a killed call goes on from there. Once a step fails, is
declined or does not fit into the limit, the stack is destroyed. Nothing in the file names the account
(redact.py).
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml

from trainyard.catalog.versions import TRAINYARD
from trainyard.decide import plan_stack
from trainyard.operations.prove.acts import ACTS
from trainyard.operations.prove.hour import Failed, Hour, LimitReached, NothingMade, wait_for_child
from trainyard.operations.prove.limit import Offer, fits
from trainyard.operations.prove.page import page
from trainyard.operations.prove.record import (
    FILE,
    LOCAL,
    PAGE,
    SCHEMA,
    NotReadable,
    Proof,
    State,
    epoch,
    iso,
    load,
)
from trainyard.operations.prove.redact import own_values, redacted
from trainyard.operations.prove.steps import PREFIX, STEPS, Step, environment_of, settings_of
from trainyard.operations.reach.consent import DECLINED, ask
from trainyard.operations.reach.pulumi import PulumiError, deployment
from trainyard.plan import EnvironmentPlan
from trainyard.problems import Refused, listed
from trainyard.reports.costs.cost import estimate
from trainyard.settings.reading.reader import project_name, read

GAVE_UP = ("failed", "stopped")
"""States of a step after which nothing more is made."""
NO_MONEY = -1
"""Answer to a step that does not fit into the limit."""
PROGRAMS = ("pulumi", "kubectl", "helm")
"""Programs that the steps call."""
NEW = f"trainyard new environment {PREFIX} --name {PREFIX}"
GOES_ON = "trainyard prove goes on from here, and with --destroy it only deletes"


class NotBegun(RuntimeError):
    """Error: nothing is begun; the message says what to do."""


def main(options: argparse.Namespace) -> int:
    """Return 0 where no step failed and nothing is left, 1 where one did, 2 where there is no terminal to
    ask, 3 where somebody declined a step."""
    try:
        hour, offers = _prepared(options)
    except Refused as refused:
        print("\n".join(listed(refused.errors)), file=sys.stderr)
        return 1
    except (NotBegun, NotReadable, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 1
    if hour.proof.over:
        print(page(hour.proof))
        print(f"it is over. To begin another: move {FILE} and {LOCAL} away", file=sys.stderr)
        return _code(hour.proof)
    try:
        return _go(hour, offers, options)
    except KeyboardInterrupt:
        print(f"\nstopped; what was made still costs money. {GOES_ON}", file=sys.stderr)
        raise


def _prepared(options: argparse.Namespace) -> tuple[Hour, Mapping[str, Offer]]:
    """The hour, new or from its file, and the price of each step. NotBegun, NotReadable, Refused."""
    stack, proof = options.stack, load()
    if not stack.startswith(PREFIX):
        raise NotBegun(
            f"--stack: must begin with {PREFIX}, because the stack is destroyed at the end; got {stack}."
            f" Fix: {NEW}, then go to that folder"
        )
    file = Path(f"Pulumi.{stack}.yaml")
    if not file.exists():
        raise NotBegun(f"{file}: must exist; got no file. Fix: {NEW}, then go to that folder")
    key, config = _environment(file)
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        raise NotBegun(
            f"PATH: must have {', '.join(missing)}; got none. Fix: install what is missing"
        )
    if proof is None:
        _require_own_cluster(config[key])
        proof = _new(options, config, key)
        _require_empty(stack)
    elif options.at_most_dollars is not None:
        proof.limit_usd = str(options.at_most_dollars)
    hour = Hour(
        stack=stack,
        live=options.live,
        image=options.image or _image(config[key]),
        wait_minutes=options.look_after,
        limit=Decimal(proof.limit_usd),
        proof=proof,
        own=frozenset(own_values(os.environ, config)),
    )
    return hour, {step.name: _offer(step, stack, config, key) for step in STEPS}


def _environment(file: Path) -> tuple[str, dict[str, Any]]:
    """Key of the environment, and `config` of a stack file. NotBegun where it is none of an environment."""
    try:
        return environment_of(file)
    except (yaml.YAMLError, TypeError, KeyError, StopIteration):
        raise NotBegun(
            f"{file}: must be the stack file of an environment. Fix: {NEW} in another folder"
        ) from None


def _new(options: argparse.Namespace, config: Mapping[str, Any], key: str) -> Proof:
    if options.destroy:
        raise NotBegun(f"{FILE}: must exist for --destroy; got no file. Fix: leave --destroy out")
    if options.at_most_dollars is None:
        raise NotBegun(
            "--at-most-dollars is missing: the hour keeps this limit. Fix: write such as 15"
        )
    return Proof(
        schema=SCHEMA,
        live=options.live,
        began=iso(time.time()),
        region=str(config.get("aws:region")),
        zone=str(config[key].get("zone")),
        limit_usd=str(options.at_most_dollars),
        versions={"Trainyard": TRAINYARD, "Python": platform.python_version()},
    )


def _require_own_cluster(environment: Mapping[str, Any]) -> None:
    """NotBegun where the cluster is somebody's: it has jobs and nodes that are not of the hour."""
    if name := (environment.get("cluster") or {}).get("name"):
        raise NotBegun(
            "environment.cluster.name: must not be set, because the hour makes a cluster, measures it and deletes it"
            f" with every job in it; got {name}. Fix: {NEW} in another folder"
        )


def _require_empty(stack: str) -> None:
    """NotBegun where the stack has resources: it is somebody's, and would be destroyed at the end."""
    try:
        resources = deployment(stack)["deployment"].get("resources")
    except PulumiError:
        return  # there is no such stack yet
    if resources and len(resources) > 1:
        raise NotBegun(
            f"stack {stack} must have no resources before a first call, because it is destroyed at the end;"
            f" got {len(resources)}. Fix: {NEW} in another folder, with another name that begins with {PREFIX}"
        )


def _image(environment: Mapping[str, Any]) -> str:
    """Image of the first runtime of the file's own. NotBegun where there is none."""
    runtimes = (environment.get("trainer") or {}).get("own_runtimes") or {}
    for runtime in runtimes.values():
        if isinstance(runtime, dict) and runtime.get("image"):
            return str(runtime["image"])
    raise NotBegun("--image is missing, and no runtime names one. Fix: --image an image with torch")


def _offer(step: Step, stack: str, config: Mapping[str, Any], key: str) -> Offer:
    """The price of a step. Refused where the stack file of the step has errors; NotBegun where a price of
    the region is missing, because no limit could be kept."""
    if not step.builds:
        return Offer(step=step, usd_per_hour=Decimal())
    values = settings_of(step, config, key)
    reading = read(values, stack=stack, project=project_name(Path()))
    plan = plan_stack(reading).accepted()
    assert isinstance(plan, EnvironmentPlan)  # its key says so
    total = estimate(plan).all_full
    if total.most_usd_per_hour is None:
        region = config.get("aws:region")
        raise NotBegun(
            f"no price of {region} is known of {', '.join(total.missing)}, so no limit can be kept. Fix:"
            f" python -m trainyard.catalog.refresh --prices --region {region}, or a region such as us-east-1"
        )
    return Offer(step=step, usd_per_hour=total.most_usd_per_hour)


# ---- one step after the other


def _go(hour: Hour, offers: Mapping[str, Offer], options: argparse.Namespace) -> int:
    """Do what is not done yet; the exit code."""
    _take_up(hour, only_delete=options.destroy)
    declined, early = False, options.destroy
    for step in STEPS:
        early = early or any(each.state in GAVE_UP for each in hour.proof.steps)
        if not _is_due(hour, step, early):
            continue
        begun = hour.proof.step(step.name) is not None
        code = 0 if begun else _agreed(hour, step, offers[step.name], options)
        if code in (DECLINED, NO_MONEY):
            early, declined = True, code == DECLINED
        elif code:
            return code
        else:
            _do(hour, step, offers[step.name], resumed=begun)
    return _ended(hour) or (DECLINED if declined else 0)


def _take_up(hour: Hour, *, only_delete: bool) -> None:
    """Settle what an earlier call has left unfinished."""
    wait_for_child()
    if not hour.built:  # what failed and made nothing is done again, questions among it
        hour.proof.steps = [step for step in hour.proof.steps if step.state == "done"]
    if only_delete:
        _give_up(hour)


def _is_due(hour: Hour, step: Step, early: bool) -> bool:
    """True where a step is to be done now. `early`: nothing more is to be made."""
    done = hour.proof.step(step.name)
    if not step.cleans:
        return not early and (done is None or done.state == "running")
    before = hour.proof.step("destroy")
    deleted = step.name == "destroy" or (before is not None and before.state == "done")
    return hour.built and deleted and (done is None or done.state != "done")


def _give_up(hour: Hour) -> None:
    """End the step that a killed call was in."""
    for done in hour.proof.steps:
        if done.state == "running" and not next(s for s in STEPS if s.name == done.name).cleans:
            done.state, done.end, done.usd_per_hour_after = "stopped", iso(time.time()), True


def _agreed(hour: Hour, step: Step, offer: Offer, options: argparse.Namespace) -> int:
    """Print what a step costs, and ask; NO_MONEY where it does not fit into the limit."""
    spent = hour.spent()
    print(f"\n{offer.said(spent, hour.limit)}", flush=True)
    if step.cleans:
        return 0
    if not fits(offer, spent, hour.limit):
        print(
            f"{step.name}: not begun, because {hour.limit - spent:,.2f} USD are left of the limit"
        )
        return NO_MONEY
    otherwise = (
        f"Not begun: {step.name}. What was made before is deleted now." if hour.built else ""
    )
    return ask("Do it?", yes=options.yes, otherwise=otherwise or f"Not begun: {step.name}.")


def _do(hour: Hour, step: Step, offer: Offer, *, resumed: bool) -> None:
    """One step, with its end in the file."""
    if resumed:
        hour.step, hour.done.state, hour.done.end = step, "running", ""
    else:
        before = next((s.usd_per_hour for s in reversed(hour.proof.steps)), "0")
        rate = Decimal(before) if step.name == "destroy" else offer.usd_per_hour
        hour.begin(step, rate, offer.most_usd)
    done, stands = hour.done, step.builds
    state: State = "done"
    try:
        ACTS[step.name](hour, resumed)
    except LimitReached as error:
        done.refusals, state = [*done.refusals, str(error)], "stopped"
    except (Failed, RuntimeError, FileNotFoundError) as error:
        text = str(error)
        done.refusals += [text] if text not in done.refusals else []
        state = "failed"
        print(f"{step.name} failed: {text}", file=sys.stderr)
        if isinstance(error, NothingMade):
            stands = False
            print(f"nothing was made: the same command begins {step.name} again", file=sys.stderr)
    now = time.time()
    done.state = state
    done.end, done.seconds = iso(now), round(now - epoch(done.start), 1)
    done.usd_per_hour_after = stands or (step.name == "destroy" and state != "done")
    hour.save()


def _ended(hour: Hour) -> int:
    """Print the page and write it beside the file; the exit code."""
    hour.save()
    text = redacted(page(hour.proof), hour.own)
    PAGE.write_text(text)
    print(f"\n{text}")
    if hour.built and not hour.proof.over:
        print(f"not everything is deleted, which costs money. {GOES_ON}", file=sys.stderr)
    print(f"next: read {FILE} and {PAGE}, and send us both", file=sys.stderr)
    return _code(hour.proof)


def _code(proof: Proof) -> int:
    failed = any(step.state == "failed" for step in proof.steps)
    return int(failed or bool(proof.left))
