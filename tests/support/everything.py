"""A stack file with nearly every setting, in which nothing is wrong."""

from __future__ import annotations

import copy
from typing import Any

from tests.support.stackfile import ENVIRONMENT, values

_IMAGE = "registry.example.com/train:1"
_ROLE = "arn:aws:iam::111122223333:role"
_TRAIN: dict[str, Any] = {
    "runtime": "torch-distributed-resilient",
    "nodes": 2,
    "pool": "g6e",
    "image": _IMAGE,
    "torchrun": {"script": "/code/train.py", "arguments": ["--epochs", "3"], "max_restarts": 1},
    "processes_per_node": 8,
    "storage": {"scratch": {"path": "/scratch"}, "home": {"path": "/home/team"}},
    "checkpoints": {
        "store": "scratch",
        "directory": "train",
        "interval_minutes": 30,
        "asynchronous": True,
    },
    "parameters_billion": 7,
    "bytes_per_parameter": 12,
    "goodput_percent": 50,
    "expected_hours": 5,
    "allow_slow_fabric": True,
    "shared_memory_gib": 32,
    "local_scratch": "/local",
    "files": {"sources": ["workloads/training-on-eks/samples/fsdp/t5-fsdp.py"], "path": "/code2"},
    "host_paths": {"models": {"host": "/models", "path": "/models"}},
    "tensorboard": {"store": "home", "directory": "boards"},
    "env": {"NCCL_DEBUG": "INFO"},
    "secrets": {"HF_TOKEN": {"secret": "hf-token", "key": "token"}},
    "pull_secrets": ["registry"],
    "labels": {"team": "vision"},
    "wait": "running",
    "wait_minutes": 90,
    "run": 2,
}
_LEGACY: dict[str, Any] = {
    "pytorch_job": {
        "clean_pods": "none",
        "keep_finished_minutes": 5,
        "restarts": 2,
        "coordinator": False,
    },
    "nodes": 2,
    "pool": "g6e",
    "image": _IMAGE,
    "command": ["torchrun", "--nnodes=2", "--nproc-per-node=8", "train.py"],
    "elastic": {"min_nodes": 1, "max_nodes": 2},
    "checkpoints": {"store": "scratch", "directory": "legacy"},
    "priority": "high",
    "time_limit_minutes": 600,
}
_POOLS: dict[str, Any] = {
    "reserved": {
        "instance_types": ["p5.48xlarge"],
        "max_nodes": 2,
        "capacity": "reservation",
        "reservation": {"id": "cr-0123456789abcdef0", "instances": 3},
        "replicas": 1,
        "warm_spares": 1,
        "root_volume_gib": 300,
    },
    "single": {
        "instance_types": ["g6e.48xlarge", "p5.48xlarge"],
        "max_nodes": 1,
        "fallback_zones": ["ap-northeast-2c"],
    },
}
_DATA: dict[str, Any] = {
    "lustre": {
        "for_model": {"parameters_billion": 7, "nodes": 2, "goodput_percent": 90},
        "repositories": {
            "sets": {"s3": "s3://sets/a/", "path": "/data", "auto_import": ["NEW"]},
        },
    },
    "data": "keep",
}


def everything() -> dict[str, Any]:
    """The configuration of the file."""
    found = values()
    found |= {
        "aws:assumeRoles": [{"roleArn": f"{_ROLE}/deployer", "duration": "1h30m"}],
        "aws:allowedAccountIds": ["111122223333"],
        "aws:defaultTags": {"tags": {"cost-center": "17"}},
    }
    wanted = found[ENVIRONMENT]
    wanted["network"]["zones"] = ["ap-northeast-2a", "ap-northeast-2c"]
    wanted["cluster"]["admins"] = {"ops": {"role_arn": f"{_ROLE}/ops"}}
    wanted["pools"] |= copy.deepcopy(_POOLS)
    wanted["storage"]["data"] = copy.deepcopy(_DATA)
    wanted["jobs"] |= copy.deepcopy({"train": _TRAIN, "legacy": _LEGACY})
    return found | {
        ENVIRONMENT: wanted
        | {
            "zone_id": "apne2-az1",
            "system_nodes": {"instance_type": "m7i.xlarge", "nodes": 3},
            "karpenter": {"dry_run": True},
            "registries": {"images": {"data": "delete"}},
            "training_operator": {"version": "1.8.1"},
            "namespace": "training",
            "priorities": {"high": 1000},
            "production": False,
            "tags": {"team": "vision"},
        }
    }
