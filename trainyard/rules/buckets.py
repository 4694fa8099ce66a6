"""Warnings about scripts that name S3: a program that takes an address for a folder, and a command without an identity.
Whether a script copies what it saves to S3: trainyard/derive/scripts.py, `knows_s3`.

Sources: transformers 4.57, Trainer._save and save_model (`os.makedirs(output_dir, exist_ok=True)`); of Lightning,
torch.distributed.checkpoint and Composer writers take an address by fsspec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.jobs import CHECKPOINTS
from trainyard.derive.scripts import AWS_S3
from trainyard.problems import InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig

ADDRESS = re.compile(r"--output[-_]dir[= ][\"']?(s3://[^\s;|&\"')]+)")
"""The option of transformers for its folder, with an address."""
OF_TRANSFORMERS = re.compile(
    r"\brun_(?:clm|mlm|plm|glue|qa|ner|swag|summarization|translation|speech|image|audio|mae|mim)\w*\.py"
    r"|\btrl\s+(?:sft|dpo|kto|grpo|reward)\b|\b(?:llamafactory-cli|axolotl|swift)\s"
)
"""Programs of transformers, or upon its Trainer."""
WRITES_ADDRESSES = re.compile(
    r"(?i)lightning|litgpt|\bfabric\b|fsspec|s3fs|s3torch|boto3|composer|megatron|nemo|torchtitan|sagemaker"
)
"""Programs that write to an address themselves, or may do so."""
COMMANDS = re.compile(rf"(?m)(?<![\w./-])({AWS_S3}|s5cmd)\s+(?!-*(?:help|version)\b)")
"""Commands that read and write S3 by the identity of their pod."""
OWN_IDENTITY = re.compile(
    r"--no-sign-request|--endpoint|--profile|--credentials-file|\.aws/|\baws\s+(?:configure|sso|sts)\b|AWS_\w*(?:KEY|PROFILE|CREDENTIALS|ROLE|TOKEN)"
)
"""Words of a command that needs no identity of the pod, or brings one."""


def address_as_folder(view: JobView, container: ContainerView) -> Iterator[InputWarning]:
    """An address where transformers expects a folder. Of another program of a file nobody knows."""
    script = container.script
    is_asked = view.origin == "entry" or OF_TRANSFORMERS.search(script)
    if not is_asked or WRITES_ADDRESSES.search(f"{script} {container.image}"):
        return
    for address in dict.fromkeys(ADDRESS.findall(script)):
        folder = address.replace("//", "/", 1)
        yield container.where("script").warning(
            f"transformers makes a folder {folder} in the container for {address}, and the model is gone with the pod;"
            f" unless the program writes to S3 itself, save below {CHECKPOINTS}, and let a Lustre store export to S3"
        )


def identity_warnings(
    view: JobView, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """A command for S3 in a job of the environment, whose pods have no AWS identity: they cannot reach that of their
    node (gpu_pool.py, httpPutResponseHopLimit). Pods of a team may have one."""
    own, script = environment.own_runtime(job), view.containers[0].script
    given = " ".join((*job.env, *job.secrets, *(own.env if own else ())))
    is_team = view.where("job").path.startswith("team.")
    if is_team or OWN_IDENTITY.search(f"{script} {given}"):
        return
    if found := COMMANDS.search(re.sub(r"(?m)^\s*#.*", "", script)):
        yield view.where("script").warning(
            f"`{' '.join(found[1].split())}` finds no AWS identity in its pod, and fails at a bucket that is not"
            " public; for what the job reads write data: {<name>: {from_s3: …}}, or hand keys over in secrets"
        )
