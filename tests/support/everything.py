"""A stack file with every setting that an environment can have beside the others, in which nothing is
wrong."""

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
    "torchrun": {
        "script": "/code/train.py",
        "arguments": ["--epochs", "3"],
        "max_restarts": 1,
        "rendezvous": {"etcd": "etcd.training:2379"},
    },
    "processes_per_node": 8,
    "after": ["part"],
    "storage": {"scratch": {"path": "/scratch"}, "home": {"path": "/home/team"}},
    "data": {
        "corpus": {
            "from_s3": {
                "address": "s3://our-sets/corpus/",
                "region": "ap-northeast-2",
                "kms_key_arn": "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000",
            },
            "only": ["*.parquet"],
            "store": "scratch",
            "directory": "corpus",
            "pool": "cpu",
            "check": {"files": 3, "bytes": 4_000_000_000, "sha256": "ab" * 32},
            "wait_hours": 6,
        },
        "copied": {
            "from_store": {"store": "home", "directory": "sets"},
            "store": "scratch",
            "directory": "sets",
            "pool": "cpu",
        },
    },
    "weights": {
        "base": {
            "from_huggingface": {
                "repository": "Qwen/Qwen3-8B",
                "revision": "0123456789abcdef0123456789abcdef01234567",
                "token": {"secret": "hf-token", "key": "token"},
                "endpoint": "https://models.example.com",
            },
            "store": "scratch",
            "directory": "models/qwen3-8b",
            "pool": "cpu",
        }
    },
    "checkpoints": {
        "store": "scratch",
        "directory": "train",
        "interval_minutes": 30,
        "keep": 3,
        "asynchronous": True,
        "when_changed": "resume",
    },
    "parameters_billion": 7,
    "bytes_per_parameter": 12,
    "model": {
        "name": "vision/own-7b",
        "layers": 32,
        "hidden": 4096,
        "vocabulary": 32_000,
        "trainable_billion": 0.5,
        "precision": "mixed",
        "optimizer": "adamw",
        "sharding": "zero3",
        "offload": "optimizer",
        "checkpointing": "full",
        "sequence": 2048,
        "batch_per_gpu": 1,
    },
    "image_gb": 12,
    "other_stops_per_day": 0.5,
    "goodput_percent": 50,
    "expected_hours": 5,
    "allow_slow_fabric": True,
    "shared_memory_gib": 32,
    "local_scratch": "/local",
    "files": {"sources": ["workloads/training-on-eks/samples/fsdp/t5-fsdp.py"], "path": "/code2"},
    "host_paths": {"models": {"host": "/models", "path": "/models"}},
    "tensorboard": {"store": "home", "directory": "boards"},
    "env": {"NCCL_DEBUG": "INFO"},
    "secrets": {
        "HF_TOKEN": {"secret": "hf-token", "key": "token"},
        "WANDB_API_KEY": {
            "secrets_manager": "training/wandb",
            "key": "api-key",
            "kms_key_arn": "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000",
        },
    },
    "pull_secrets": ["registry"],
    "labels": {"team": "vision"},
    "wait": "running",
    "wait_minutes": 90,
    "run": 2,
}
_LEGACY: dict[str, Any] = {
    "pytorch_job": {
        "clean_pods": "none",
        "restarts": 2,
        "coordinator": False,
        "image_pull_policy": "always",
        "master_labels": {"role": "first"},
        "worker_labels": {"role": "other"},
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
_PART: dict[str, Any] = {
    "runtime": "own",
    "nodes": 1,
    "pool": "g6e",
    "image": _IMAGE,
    "arguments": ["--epochs", "3"],
    "gpus_per_node": 4,
    "cpus_per_node": 40,
    "memory_gib": 200,
    "allow_no_checkpoint": True,
}
_SWEPT: dict[str, Any] = {
    **_PART,
    "arguments": ["--lr={lr}"],
    "sweep": {
        "over": {"lr": [0.1, 0.2]},
        "at_most": 1,
        "metric": {"name": "loss", "goal": "minimize"},
    },
}
_SCHEDULED: dict[str, Any] = {
    **_PART,
    "arguments": ["--day={scheduled_time}"],
    "schedule": {
        "cron": "0 3 * * 1",
        "time_zone": "Asia/Seoul",
        "concurrency_policy": "replace",
        "starting_deadline_minutes": 30,
        "keep_runs": 5,
        "suspend": True,
    },
}
_FILE: dict[str, Any] = {
    "manifest": "tests/workloads/valid/trainjob-clone-pinned.yaml",
    "pool": "g6e",
    "claims": {"data": "scratch"},
    "after": ["train"],
    "privileged_pods": True,
    "expected_hours": 2,
    "wait": "running",
    "wait_minutes": 30,
    "run": 3,
}
_POOLS: dict[str, Any] = {
    "cpu": {"instance_types": ["m7i.4xlarge"], "max_nodes": 1},
    "reserved": {
        "instance_types": ["p5.48xlarge"],
        "max_nodes": 2,
        "capacity": "reservation",
        "reservation": {
            "id": "cr-0123456789abcdef0",
            "instances": 3,
            "placement_group": "ours",
            "starts": "2026-01-01T11:30:00Z",
            "ends": "2099-01-01T11:30:00Z",
        },
        "replicas": 1,
        "warm_spares": 1,
        "root_volume_gib": 300,
    },
    "single": {
        "instance_types": ["g6e.48xlarge", "p5.48xlarge"],
        "max_nodes": 1,
        "fallback_zones": ["ap-northeast-2c"],
        "placement": "anywhere",
        "prefetch": [_IMAGE],
        "ami_family": "Bottlerocket",
    },
}
_DATA: dict[str, Any] = {
    "lustre": {
        "for_model": {
            "parameters_billion": 7,
            "nodes": 2,
            "goodput_percent": 90,
            "bytes_per_parameter": 12,
        },
        "efa": False,
        "deployment": "PERSISTENT_2",
        "repositories": {
            "sets": {
                "s3": "s3://sets/a/",
                "path": "/data",
                "auto_import": ["NEW"],
                "auto_export": ["NEW"],
                "import_at_creation": True,
                "delete_data_in_filesystem": True,
            },
        },
    },
    "data": "keep",
}
_STORES: dict[str, Any] = {
    "data": _DATA,
    "kept": {
        "lustre": {
            "capacity_gib": 1200,
            "throughput_mbps_per_tib": 125,
            "backup_days": 7,
            "maintenance_window": "sunday 16:30",
        },
        "teams": "apart",
    },
    "slow": {
        "efs": {
            "throughput": "provisioned",
            "throughput_mibps": 128,
            "backup_days": 35,
            "lifecycle": {"infrequent_after_days": 30, "back_on_access": True},
            "only_this_cluster": True,
        },
    },
    "old": {"efs": {"lifecycle": {"infrequent_after_days": 30, "archive_after_days": 90}}},
    "made": {
        "s3": {
            "delete_after_days": {"checkpoints/": 30},
            "versioning": True,
            "old_versions_days": 7,
        },
    },
    "sets": {
        "s3": {
            "bucket": "our-sets",
            "writable": False,
            "kms_key_arn": "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000",
        },
    },
}
_RUNTIMES: dict[str, Any] = {
    "own": {
        "kind": "torch",
        "image": _IMAGE,
        "command": ["torchrun", "train.py"],
        "env": {"NCCL_DEBUG": "INFO"},
        "image_pull_policy": "always",
        "priority": "high",
        "max_restarts": 1,
        "pool": "g6e",
    },
    "tune": {
        "kind": "torchtune",
        "image": _IMAGE,
        "torchtune": {
            "model": "qwen2.5-1.5b",
            "store": "scratch",
            "directory": "models",
            "token": {"secret": "hf-token", "key": "token"},
        },
    },
}
_TEAM: dict[str, Any] = {
    "deployer": f"{_ROLE}/vision",
    "members": [f"{_ROLE}/people"],
    "viewers": [f"{_ROLE}/viewers"],
    "namespace": "team-of-vision",
    "max_gpus": 8,
    "max_jobs": 10,
    "max_pods": 50,
    "stores": ["home"],
    "schedules": True,
    "allowed_priorities": ["high"],
    "image_prefixes": ["registry.example.com/vision/"],
    "s3_reads": ["s3://data-sets/imagenet/"],
    "s3_writes": ["s3://results/vision/"],
    "secrets": ["vision/", "shared/hf-token"],
    "kms_key_arns": [
        "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
    ],
    "tags": {"cost-center": "18"},
}


def everything() -> dict[str, Any]:
    """The configuration of the file."""
    found = values()
    found |= {
        "aws:assumeRoles": [
            {"roleArn": f"{_ROLE}/first", "externalId": "ours", "sessionName": "up"},
            {"roleArn": f"{_ROLE}/deployer", "duration": "1h30m"},
        ],
        "aws:allowedAccountIds": ["111122223333"],
        "aws:defaultTags": {"tags": {"cost-center": "17"}},
    }
    wanted = found[ENVIRONMENT]
    wanted["network"] |= {"zones": ["ap-northeast-2a", "ap-northeast-2c"], "nat": "each_zone"}
    wanted["network"]["endpoints"] = "private"
    wanted["network"]["flow_logs"] = {"days": 14}
    wanted["cluster"] |= {
        "admins": {"ops": {"role_arn": f"{_ROLE}/ops"}},
        "viewers": {"night": {"role_arn": f"{_ROLE}/night"}},
        "service_cidr": "192.168.128.0/18",
        "node_sessions": True,
        "logs": ["audit"],
        "log_retention_days": 90,
        "deletion_protection": True,
        "scaling_tier": "tier-xl",
        "upgrade_policy": "standard",
        "deployer_role_arn": f"{_ROLE}/deployer",
    }
    wanted["pools"] |= copy.deepcopy(_POOLS)
    wanted["storage"] |= copy.deepcopy(_STORES)
    wanted["trainer"]["own_runtimes"] |= copy.deepcopy(_RUNTIMES)
    wanted["jobs"] |= copy.deepcopy(
        {
            "train": _TRAIN,
            "legacy": _LEGACY,
            "part": _PART,
            "swept": _SWEPT,
            "scheduled": _SCHEDULED,
        }
        | {"file": _FILE}
    )
    return found | {
        ENVIRONMENT: wanted
        | {
            "zone_id": "apne2-az1",
            "system_nodes": {
                "instance_type": "m7i.xlarge",
                "nodes": 3,
                "release": "1.35.4-20260724",
            },
            "karpenter": {"version": "1.14.1", "dry_run": True},
            "registries": {"images": {"data": "delete", "keep_images": 30}},
            "training_operator": {"version": "1.8.1", "more_kinds": ["TFJob"]},
            "namespace": "training",
            "priorities": {"high": 1000},
            "production": False,
            "allow_replace": ["storage.scratch", "pools.h100"],
            "permissions_boundary": "arn:aws:iam::111122223333:policy/boundary",
            "kms_key_arn": (
                "arn:aws:kms:ap-northeast-2:111122223333:key/0a1b2c3d-0000-4000-8000-000000000000"
            ),
            "artifacts": {
                "charts": "registry.example.com/charts",
                "images": "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror",
            },
            "metrics": {
                "retention_days": 7,
                "remote_write": {"url": "https://metrics.example.com/api/v1/write"},
                "managed_prometheus": {"retention_days": 400, "data": "delete"},
                "push_gateway": True,
                "grafana": True,
                "dollars_a_day": 2000,
                "alerts": {"emails": ["gpu-oncall@example.com"], "severity": "critical"},
            },
            "repair": {"nodes_an_hour": 2, "hung_minutes": 30},
            "history": {"days": 30, "progress": True},
            "logs": {"days": 90},
            "budget": {"dollars_a_month": 200000, "emails": ["gpu-budget@example.com"]},
            "prices": {
                "discount_percent": 12,
                "savings_plan_percent": {"g6e": 30.5},
                "support_percent": 3,
            },
            "told": {"emails": ["gpu-oncall@example.com"], "hung_minutes": 20},
            "teams": {"vision": copy.deepcopy(_TEAM)},
            "tags": {"team": "vision"},
        }
    }
