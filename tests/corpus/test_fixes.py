"""A fix leads somewhere: what a machine can apply of it makes its message go, and brings no new one; what is
left is for a person, and why is said here."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.corpus import bad_entries
from tests.support.cases import environment, jobs
from tests.support.fixes import alternatives, applied, ways
from tests.support.stackfile import Edit, at, values
from trainyard.decide import plan_stack
from trainyard.problems import InputError
from trainyard.settings.reading.reader import read

SEED, SAMPLE = 38, 120


TWO_FAULTS: dict[str, str] = {
    "goodput_percent: must be less than 100": "needs parameters_billion too",
    "efs.throughput_mibps: must be at most": "is not for elastic throughput",
    "jobs.t5-large.priority: must not be set": "is none of environment.priorities either",
    "own_runtimes.tune.torchtune: must not be set": "is all that the job runs",
    "efs.throughput_mibps: must be a whole number": "is not for elastic throughput",
    "archive_after_days: must not be set with throughput": "was all that lifecycle said",
    "file_system_id: must be the id of a file system": "names one that exists, which nobody here knows",
    "zone: must be text": "is no zone either",
    "artifacts.images: must be text": "is no registry either",
    "allow_replace: must be a list": "names nothing either",
    "network.internet: must be one of": "asks for a network without the internet",
    "gpus_per_node: must be at least 1": "contradicts the script",
    "max_nodes: must be at least 1": "is less than the job needs",
    "max_nodes: must be at most 1, the instances of": "is more than is reserved, and the job needs it",
    "files.sources: must not be empty": "names no file, and nobody knows which one is meant",
    "files: must be settings": "names a file that is not there",
    "command: must be a list": "stands beside a script",
    "arguments: must be a list": "stands beside a script",
    "torchrun: must be settings": "stands beside a script",
    'capacity_gib: must be a whole number; got "5TiB"': "is no size that FSx sells",
    "wait_minutes: must be a whole number": "is shorter than the run",
    "storage.data: must be a store": "is a key, and the fix names keys",
    "files.sources: must list files": "names a file, and nobody knows which one is meant",
    "spot: must be the name of a setting": "is another setting, with another name",
    "system_nodes.count: must be the name": "is too small for the setting that is meant",
    "jobs.t5-large.args: must be the name": "stands beside a script",
    "jobs.t5-large.entrypoint: must be the name": "stands beside a script",
    "checkpoints.path: must be the name": "is no place on a store either",
    "shm_size: must be the name": "has a unit, which the setting that is meant has not",
    "timeout: must be the name": "has a unit, which the setting that is meant has not",
    "image: must not contain a placeholder": "is text that a person knows",
    "prefetch.0: must not contain a placeholder": "is text that a person knows",
    "script: must run something: YAML folded": "is folded by YAML, before anybody reads it",
    "checkpoints.store: must have room for 3": "promises a goodput that no store keeps",
}
"""Beginning of an error → the other fault of the same value, which shows when the first is gone."""
BY_A_PERSON: dict[str, str] = {
    r"(write|copy|add|name) .*\b(ARN|arn:|key of|id|ids|VPC|subnet|zone)\b"
    r"|write network: |name a bucket|write images: |(starts|both|it) from `aws"
    r"|copy |write .*own address|add tunnel_port|inside_vpc|a VPN|write each zone": "what is in the account",
    r"(name|take|use|move|buy|link|lower|run|install|add one|add a |add it|add its path|add restarts|wait)\b"
    r"|(EFS|nearest with|in [a-z-]+-\d these|two blocks|this program|endpoint:)"
    r"|lustre\.repositories|write (another|wider|fewer|a prefix|auto_export|capacity_gib and|the name of)"
    r"|make |faster|write (replicas|a range)|for a private|for_model: |set parameters|[\w.-]+$"
    r"|to S3:|arguments:|allow_no_checkpoint|set it |raise ": "what it costs, or what is lost",
    r"(shorten|correct|rename (one|the)|use (letters|PET|a key)|the (first|quote|image|strategy|stage)|block)"
    r"|add \S+: \d+ under"
    r"|delete the setting"
    r"|delete (\d+ of|all (of|that)|one of|that|the (comment|#|job|pool|name)|\{run|text|sets|it where|it for|it, and)"
    r"|delete (what |--)"
    r"|write (what|the |text|a (number|whole|value|list|name)|numbers|all three|script|kind|torchrun|1[ ,]|\||id)"
    r"|python|add --|write trainer\.|a name|\{run\}"
    r"|write (registry|one such|pytorch|parameters|resume|sharding|checkpoints: )"
    r"|the (settings are|prefix|range)|if the "
    r"|save|put|persistent|sharding|describe|check out|bake|a digest|leave|drop|with gpus"
    r"|write \{\w+\} where|write \\n |(Trainium|Gaudi)|add (key|layers|hidden|vocabulary)"
    r"|write \S+:<|name it|write some"
    r"|(pytorch_job: \{restarts|list the teams|change aws:region|rename it|turn on|set replicas)"
    r"|\"1\.\d+\"|\{(efs|s3): \{\}\}|add parameters|delete (throughput|the blank)"
    r"|hand it|write (storage: |efs: )|lustre: all pods|Bottlerocket|another of them"
    r"|[\d.]+/32 for one|to (mount|copy|have) |close what is open"
    r"|write (max_restarts|that size|name: |image_prefixes|model: )": "what is meant",
    r"a pool has|GPU nodes have|a job with schedule has|the owner of|an existing VPC|with \d+ GiB|the setting is in"
    r"|asynchronous: true|gpus_per_node, |with environment\.queues|an entry has|docs/stack-file"
    r"|jobs find |a store that is deployed |auto_export keeps|a faster tier|it follows|each team"
    r"|the manifest file": "nothing: it says why",
    r"delete it here and revoke|a job takes|write the value as plain text": "a secret",
    r"delete \S+, and (the stack|mount)": "another file of the stack",
}
"""Beginning of a way out that no machine takes → what a person knows of it."""


def _errors(made: dict[str, Any]) -> tuple[InputError, ...]:
    """Errors of the development environment in these words."""
    return plan_stack(read(made, stack="dev", project="trainyard")).errors


def _cases() -> dict[str, dict[str, Any]]:
    """Bad stack files by their names."""
    rows: dict[str, list[Edit]] = {
        f"{path} {str(value)[:40]}": [at(path, value)] for path, value, *_ in bad_entries.ROWS
    }
    for table in (environment.REFUSED, jobs.REFUSED):
        rows |= {name: row[0] for name, row in table.items()}
    return {name: values(*edits) for name, edits in rows.items()}


def _astray(name: str, made: dict[str, Any]) -> Iterator[str]:
    """Each way out that does not end its error, or brings one that was not there."""
    errors = _errors(made)
    rules = {error.must for error in errors}
    for error in errors:
        if any(f".{words}" in f".{error}" for words in TWO_FAULTS) or not error.path:
            continue
        for words, edits in ways(error, made):
            after = _errors(applied(made, edits))
            wrong = [
                str(each)
                for each in after
                if (each.path, each.must) == (error.path, error.must) or each.must not in rules
            ]
            if wrong:
                yield f"{name}: {error}\n    {words} -> {wrong}"


def _left_open(made: dict[str, Any]) -> Iterator[str]:
    """Each way out that neither a machine nor a line of BY_A_PERSON takes."""
    for error in _errors(made):
        taken = {words for words, _ in ways(error, made)}
        for words in alternatives(error.fix):
            if words not in taken and not any(re.match(each, words) for each in BY_A_PERSON):
                yield f"{words} <- {error}"


def test_a_way_out_that_a_machine_can_take_ends_its_error_and_brings_no_other() -> None:
    cases = [*_cases().items()]
    assert len(cases) > 400
    some = random.Random(SEED).sample(cases, SAMPLE)
    assert [each for case in some for each in _astray(*case)] == []


def test_a_way_out_that_no_machine_takes_says_what_a_person_knows() -> None:
    some = random.Random(SEED + 1).sample([*_cases().values()], SAMPLE)
    assert [each for made in some for each in _left_open(made)] == []


def test_a_wrong_range_and_a_gpu_in_a_type_s_place_have_the_fix_that_fits() -> None:
    """Both were led astray: to a /32, and to the first types of the catalogue."""
    for path, value, write in (
        ("network.cidr", "10.0.0.0", "10.0.0.0/16"),
        ("network.cidr", "10.0.0.0/30", "10.0.0.0/20"),
        ("pools.g6e.instance_types", ["H100"], "p5"),
    ):
        [error, *_] = _errors(values(at(path, value)))
        assert write in error.fix, str(error)


@pytest.mark.soak
def test_every_way_out_that_a_machine_can_take_ends_its_error_and_brings_no_other() -> None:
    assert [each for case in _cases().items() for each in _astray(*case)] == []


@pytest.mark.soak
def test_every_way_out_that_no_machine_takes_says_what_a_person_knows() -> None:
    assert [each for made in _cases().values() for each in _left_open(made)] == []
