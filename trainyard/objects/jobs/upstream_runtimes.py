"""The runtimes that a release of the Trainer ships.

What differs between releases: trainyard/catalog/versions.py, TrainerRelease.
"""

from __future__ import annotations

from trainyard.catalog.versions import TRAINER_RELEASES, TrainerRelease
from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.jobs.runtime_objects import (
    container,
    mpi_runtime,
    plain_runtime,
    replicated_job,
    torch_runtime,
    training_job,
)
from trainyard.plans.jobs import Spec

IMAGES = "ghcr.io/kubeflow/trainer"
WORKSPACE = "/workspace"
"""Where upstream's initializers write, and its recipes read and write."""
TUNED = {
    "llama3.2-1b": ("meta-llama/Llama-3.2-1B-Instruct", "llama3_2/1B_full"),
    "llama3.2-3b": ("meta-llama/Llama-3.2-3B-Instruct", "llama3_2/3B_full"),
    "qwen2.5-1.5b": ("Qwen/Qwen2.5-1.5B-Instruct", "qwen2_5/1.5B_full"),
}
"""Model that upstream has a torchtune runtime for → where it is on Hugging Face, and its recipe's
configuration."""
_INITIALIZER_CLAIM: Spec = {
    "metadata": {"name": "initializer"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
}
_TOKENIZERS: dict[str, tuple[str, list[str]]] = {
    "llama3_2": ("original/tokenizer.model", []),
    "qwen2_5": ("vocab.json", ["tokenizer.merges_file=/workspace/model/merges.txt"]),
}


def upstream_runtimes(version: str) -> dict[str, tuple[str, Spec]]:
    """name → (framework, spec) of the runtimes that a release ships; KeyError for an unknown
    release."""
    release = TRAINER_RELEASES[version]
    return {
        "torch-distributed": (
            "torch",
            torch_runtime(release.torch_policy, [training_job(release.torch_image)]),
        ),
        "deepspeed-distributed": ("deepspeed", _mpi(release, "deepspeed-runtime")),
        "mlx-distributed": ("mlx", _mpi(release, "mlx-runtime")),
        **{
            f"torchtune-{model}": ("torchtune", _shipped_torchtune(release, model))
            for model in TUNED
        },
        **{
            name: (framework, plain_runtime(framework, [training_job(image)]))
            for name, (framework, image) in release.more_runtimes.items()
        },
    }


def _mpi(release: TrainerRelease, image: str) -> Spec:
    return mpi_runtime(f"{IMAGES}/{image}:{release.image_tag}", waits=release.mpi_launcher_waits)


def _shipped_torchtune(release: TrainerRelease, model: str) -> Spec:
    """On a claim that JobSet makes for each job, or on one that must be in the job's namespace."""
    image = f"{IMAGES}/torchtune-trainer:{release.image_tag}"
    if not release.own_torchtune_claim:
        claim: Spec = {
            "name": "initializer",
            "persistentVolumeClaim": {"claimName": f"torchtune-{model}"},
        }
        return torchtune_runtime(release, model, image, claim)
    spec = torchtune_runtime(release, model, image, None)
    return {
        **spec,
        "template": {
            "spec": {
                "volumeClaimPolicies": [{"templates": [_INITIALIZER_CLAIM]}],
                **spec["template"]["spec"],
            }
        },
    }


def torchtune_runtime(
    release: TrainerRelease,
    model: str,
    image: str,
    volume: Spec | None,
    directory: str | None = None,
) -> Spec:
    """Fine-tuning recipe: data set and model are fetched into one volume, then torchtune runs, on
    two GPUs unless a job says otherwise."""
    pod: Spec = {"volumes": [volume]} if volume else {}
    mount = {
        "name": volume["name"] if volume else "initializer",
        "mountPath": WORKSPACE,
        **({"subPath": directory} if directory else {}),
    }
    uris = {
        "dataset-initializer": "hf://tatsu-lab/alpaca",
        "model-initializer": f"hf://{TUNED[model][0]}",
    }
    fetching = [
        _initializer(release, step, uri, mount=mount, pod=pod) for step, uri in uris.items()
    ]
    node = container(
        "node",
        image,
        command=_recipe(model),
        volumeMounts=[mount],
        resources={"limits": {GPU: "2"}},
    )
    training = {
        **replicated_job("node", "trainer", [node], pod=pod),
        "dependsOn": [{"name": step, "status": "Complete"} for step in uris],
    }
    return torch_runtime(release.torch_policy, [*fetching, training])


def _initializer(release: TrainerRelease, step: str, uri: str, *, mount: Spec, pod: Spec) -> Spec:
    """The job that fetches what `uri` names into the volume."""
    fetch = container(
        step,
        f"{IMAGES}/{step}:{release.image_tag}",
        volumeMounts=[mount],
        env=[{"name": "STORAGE_URI", "value": uri}],
    )
    return replicated_job(step, step, [fetch], pod=pod)


def _recipe(model: str) -> list[str]:
    """The command that fine-tunes a model of TUNED."""
    config = TUNED[model][1]
    tokenizer, options = _TOKENIZERS[config.partition("/")[0]]
    return [
        "tune",
        "run",
        "--rdzv_endpoint=localhost:29500",
        "full_finetune_distributed",
        "--config",
        config,
        "dataset=torchtune.datasets.instruct_dataset",
        "dataset.source=parquet",
        "dataset.data_dir=/workspace/dataset/data",
        "output_dir=/workspace/output",
        f"tokenizer.path=/workspace/model/{tokenizer}",
        *options,
        "checkpointer.checkpoint_dir=/workspace/model",
    ]
