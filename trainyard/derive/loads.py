"""From `data` and `weights` of a job to the Jobs that load them: pool, source, place, size and time."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainyard.catalog.aws.instances import first_type
from trainyard.catalog.versions import PYTHON_IMAGE
from trainyard.derive.job_site import JobSite
from trainyard.derive.model_memory.models import is_fp8, public_model
from trainyard.derive.pod_resources import node_selector
from trainyard.objects.iam.secrets import ManagedSecret, secret_files
from trainyard.objects.jobs.load import PROGRAM, STORES, TOKEN, LoadPod, load_spec
from trainyard.objects.jobs.pod_template import SecretKey
from trainyard.parts.programs import program_files
from trainyard.plans.identity import digest
from trainyard.plans.jobs import ConfigMapPlan, LoadPlan
from trainyard.settings.job import JobConfig
from trainyard.settings.pools import PoolConfig
from trainyard.settings.training.loads import HUGGING_FACE, LoadConfig

GIGABYTES_A_SECOND = {"from_huggingface": 0.3, "from_s3": 0.5, "from_store": 0.5}
"""Source → speed of 8 files at once, with their checksums: a model. S3 gives 85 to 90 MB/s to a connection (S3
user guide, optimizing-performance-guidelines); of Hugging Face nobody says a figure."""
PART_OF_NETWORK = 0.4
"""Part of a node's bandwidth that one direction gets, as what comes in goes out to the store."""
HALF_PRECISION, FP8 = 2, 1
"""Bytes of a parameter in a repository of weights."""


def load_plans(job: JobConfig, site: JobSite) -> tuple[LoadPlan, ...]:
    """Everything that is loaded before a job, each place once."""
    plans = [_plan(setting, at, site) for setting, at in job.loads.items()]
    return tuple({plan.name: plan for plan in plans}.values())


def pool_of(load: LoadConfig, pools: Mapping[str, PoolConfig]) -> str | None:
    """The pool of a load; None where it names none and there is not exactly one without GPUs."""
    if load.pool is not None:
        return load.pool
    found = [name for name, pool in pools.items() if without_gpus(pool)]
    return found[0] if len(found) == 1 else None


def without_gpus(pool: PoolConfig) -> bool:
    """True where the first type of a pool has no GPUs."""
    kind = first_type(pool.instance_types)
    return kind is not None and not kind.gpus


def source_kind(load: LoadConfig) -> str:
    """The field that names the source: from_huggingface, from_s3 or from_store."""
    return next(kind for kind in GIGABYTES_A_SECOND if getattr(load, kind) is not None)


def _plan(setting: str, load: LoadConfig, site: JobSite) -> LoadPlan:
    """One load. `setting`: data.<name> or weights.<name>."""
    pool = pool_of(load, site.pools)
    assert pool is not None  # trainyard/rules/loads.py has looked
    pod = _pod(setting, load, site, pool)
    hub, size = load.from_huggingface, _gigabytes(setting, load)
    asked = [pod.settings, pod.claims, hub and repr(hub.token)]
    name = f"load-{_slug(load.directory)}-{digest(asked)[:8]}"
    managed = {TOKEN: hub.token} if hub and isinstance(hub.token, ManagedSecret) else {}
    files = secret_files(name, managed, site.region)
    return LoadPlan(
        name=name,
        namespace=site.namespace,
        what=pod.settings["what"],
        place=f"{load.store}/{load.directory}",
        pool=pool,
        stores=tuple(pod.claims),
        program=ConfigMapPlan(name=PROGRAM, data=program_files("loader")),
        spec=load_spec(replace(pod, files=files)),
        objects=(files.object(),) if files else (),
        reads_aws=bool(load.from_s3 or files),
        gigabytes=size,
        seconds=None if size is None else size / _speed(load, site.pools[pool]),
        from_internet=bool(hub and hub.endpoint == HUGGING_FACE),
        wait_hours=load.wait_hours,
    )


def _pod(setting: str, load: LoadConfig, site: JobSite, pool: str) -> LoadPod:
    """The pod that loads, without a token of Secrets Manager."""
    source, what = _source(setting, load, site.region)
    stores = {load.store, *([load.from_store.store] if load.from_store else [])}
    check = vars(load.check) if load.check else {}
    token = load.from_huggingface.token if load.from_huggingface else None
    return LoadPod(
        image=PYTHON_IMAGE,
        settings={
            "what": what,
            "source": source,
            "to": f"{STORES}/{load.store}/{load.directory}",
            "check": {name: value for name, value in check.items() if value is not None},
        },
        claims={name: site.claims[name] for name in sorted(stores)},
        node_selector=node_selector(
            pool, site.pools[pool], site.zone, has_workers=site.has_workers
        ),
        token=token if isinstance(token, SecretKey) else None,
    )


def _source(setting: str, load: LoadConfig, region: str) -> tuple[dict[str, Any], str]:
    """Settings of the source, and the source in words. Another text is another source."""
    only = {"only": [*load.only]} if load.only else {}
    rest = f", only {' '.join(load.only)}" if load.only else ""
    if load.from_huggingface:
        at = load.from_huggingface
        kind = "models" if setting.startswith("weights.") else "datasets"
        where = "" if at.endpoint == HUGGING_FACE else f" from {at.endpoint}"
        return (
            {
                "kind": "huggingface",
                "endpoint": at.endpoint,
                "repository": f"{kind}/{at.repository}",
                "revision": at.revision,
                **only,
            },
            f"{kind}/{at.repository} at {at.revision}{where}{rest}",
        )
    if load.from_s3:
        bucket, _, prefix = load.from_s3.address.removeprefix("s3://").partition("/")
        named = {"kind": "s3", "bucket": bucket, "prefix": prefix, "region": region}
        return {**named, **only}, f"{load.from_s3.address}{rest}"
    assert load.from_store  # trainyard/rules/loads.py has looked
    path = f"{load.from_store.store}/{load.from_store.directory}"
    return {"kind": "directory", "path": f"{STORES}/{path}", **only}, f"store {path}{rest}"


def _gigabytes(setting: str, load: LoadConfig) -> float | None:
    """Size by the check; of a public model by its parameters."""
    if load.check and load.check.bytes is not None:
        return load.check.bytes / 1e9
    if not load.from_huggingface or not setting.startswith("weights."):
        return None
    model = public_model(load.from_huggingface.repository)
    each = FP8 if is_fp8(load.from_huggingface.repository) else HALF_PRECISION
    return model.parameters * each / 1e9 if model else None


def _speed(load: LoadConfig, pool: PoolConfig) -> float:
    """Gigabytes a second."""
    kind = first_type(pool.instance_types)
    assert kind  # a type that is not known is refused
    return min(GIGABYTES_A_SECOND[source_kind(load)], kind.network_gbps / 8 * PART_OF_NETWORK)


def _slug(directory: str) -> str:
    """Last folder of a directory, as a part of the name of an object."""
    last = posixpath.basename(directory).lower()
    return re.sub(r"[^a-z0-9]+", "-", last)[:32].strip("-") or "files"
