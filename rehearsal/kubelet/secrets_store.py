"""The Secrets Store CSI driver with AWS's provider, for the volumes of one pod: which files it mounts,
fetched with the pod's own identity, or why it mounts none.

What both check, and in which words: pkg/secrets-store/nodeserver.go of
kubernetes-sigs/secrets-store-csi-driver@0aad886 (1.6.0); server/, provider/ and credential_provider/
of aws/secrets-store-csi-driver-provider-aws@a74182c (3.1.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jmespath
import yaml
from jmespath.exceptions import JMESPathError

from rehearsal.aws.secrets_store import CSI, DRIVER, GROUP, PROVIDER
from rehearsal.kube import Object, absent_is_none
from rehearsal.kubelet.aws import AwsError
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.host import Host

TYPES = ("secretsmanager", "ssmparameter")
POLL = re.compile(r"--rotation-poll-interval=(\d+)([smh])")
SECONDS = {"s": 1, "m": 60, "h": 3600}


def files(kubelet: Host, pod: Object, csi: Object) -> dict[str, bytes]:
    """File names and contents of a volume. NotReady where driver or provider refuse it."""
    driver = kubelet.daemon(DRIVER) if csi["driver"] == CSI else None
    if driver is None:
        raise NotReady(
            f"driver name {csi['driver']} not found in the list of registered CSI drivers"
        )
    name = csi.get("volumeAttributes", {}).get("secretProviderClass")
    if not name:
        raise NotReady("rpc error: code = Unknown desc = secretProviderClass is not set")
    if not csi.get("readOnly"):
        raise NotReady("rpc error: code = InvalidArgument desc = Readonly is not true in request")
    meta = pod["metadata"]
    found = _class(kubelet, driver, meta["namespace"], name)
    try:
        return dict(_mounted(kubelet, pod, found.get("spec", {})))
    except _Refused as refused:
        raise NotReady(
            "rpc error: code = Unknown desc = failed to mount secrets store objects for pod"
            f" {meta['namespace']}/{meta['name']}, err: {refused}"
        ) from None


def rotation(kubelet: Host) -> float | None:
    """Seconds between two comparisons of what is mounted; None where it stays as it is."""
    driver = kubelet.daemon(DRIVER)
    said = [*driver["spec"]["containers"][0].get("args", ())] if driver else []
    found = next(filter(None, map(POLL.fullmatch, said)), None)
    return int(found[1]) * SECONDS[found[2]] / kubelet.world.speed if found else None


class _Refused(Exception):
    """The provider's no."""


def _class(kubelet: Host, driver: Object, namespace: str, name: str) -> Object:
    """A SecretProviderClass of the pod's namespace, as the driver reads it."""
    api = kubelet.as_pod(driver)
    path = f"/apis/{GROUP}/v1/namespaces/{namespace}/secretproviderclasses/{name}"
    found = absent_is_none(lambda: api.request("GET", path))
    if found is None:
        raise NotReady(
            f"rpc error: code = Unknown desc = failed to get secretproviderclass {namespace}/{name},"
            f' error: SecretProviderClass.{GROUP} "{name}" not found'
        )
    return found


def _mounted(kubelet: Host, pod: Object, spec: Object) -> Iterator[tuple[str, bytes]]:
    provider, said = spec.get("provider"), spec.get("parameters", {})
    if provider != "aws" or kubelet.daemon(PROVIDER) is None:
        raise _Refused(
            f'error connecting to provider "{provider}": provider not found: provider "{provider}"'
        )
    region, account = said.get("region") or kubelet.zone[:-1], _account_of(pod)
    if said.get("usePodIdentity", "").lower() not in ("true", "1", "t"):
        raise _said(
            f"An IAM role must be associated with service account {account} (namespace:"
            f" {pod['metadata']['namespace']})"
        )
    wanted = _objects(said.get("objects", ""), region)
    keys = kubelet.pod_identity(pod)
    for each in wanted:
        name = each["objectName"]
        if not keys:  # aws/secrets-store-csi-driver-provider-aws#613
            raise _said(
                "Failed to fetch secret from all regions. Verify secret exists and required"
                f" permissions are granted for: {name}"
            )
        if each.get("objectType", "secretsmanager") != "secretsmanager":
            raise NotReady("the rehearsal's provider reads Secrets Manager only")
        value = _fetched(kubelet, name, region, keys)
        yield _file(each), value
        yield from _parts(each, value)


def _account_of(pod: Object) -> str:
    return pod["spec"].get("serviceAccountName", "default")


def _said(words: str) -> _Refused:
    return _Refused(f"rpc error: code = Unknown desc = {words}")


def _objects(written: str, region: str) -> list[Any]:
    """Objects that the class lists, checked as the provider does before it fetches any."""
    try:
        listed = yaml.safe_load(written) or []
    except yaml.YAMLError as error:
        raise _said(f"Failed to load SecretProviderClass: {error}") from None
    taken: set[str] = set()
    for each in listed:
        _named(each.get("objectName", ""), each.get("objectType", ""), region)
        _once(taken, "objectName", each["objectName"])
        for alias in [each.get("objectAlias"), *(one["objectAlias"] for one in _paths(each))]:
            if alias:
                _once(taken, "objectAlias", alias)
    return listed


def _named(name: str, kind: str, region: str) -> None:
    arn = name.split(":") if name.startswith("arn:") else None
    if not name:
        raise _said("Object name must be specified")
    if arn and arn[3] != region:
        raise _said(f"ARN region must match region {region}: {name}")
    if not arn and not kind:
        raise _said(f"Must use objectType when a full ARN is not specified: {name}")
    if kind and kind not in TYPES:
        raise _said(f"Invalid objectType: {kind}")


def _once(taken: set[str], field: str, name: str) -> None:
    if name in taken:
        raise _said(f"Name already in use for {field}: {name}")
    taken.add(name)


def _paths(each: Object) -> list[Object]:
    return each.get("jmesPath", [])


def _file(each: Object) -> str:
    """pathTranslation is an underscore unless the class says something else, which ours never do."""
    return (each.get("objectAlias") or each["objectName"]).replace("/", "_")


def _fetched(kubelet: Host, name: str, region: str, keys: dict[str, str]) -> bytes:
    try:
        return kubelet.account.secret_value(name, region, keys)
    except AwsError as error:
        raise _said(
            f"{region}: Failed fetching secret {name}: operation error Secrets Manager:"
            f" GetSecretValue, https response error StatusCode: 400, {error}"
        ) from None


def _parts(each: Object, value: bytes) -> Iterator[tuple[str, bytes]]:
    """The keys that the class asks for, one file each."""
    if not _paths(each):
        return
    try:
        data = json.loads(value)
    except ValueError:
        raise _said(f"Invalid JSON used with jmesPath in secret: {each['objectName']}.") from None
    for one in _paths(each):
        path, alias = one["path"], one["objectAlias"]
        try:
            found = jmespath.search(path, data)
        except JMESPathError:
            raise _said(f"Invalid JMES Path: {path}.") from None
        if found is None:
            raise _said(
                f"JMES Path - {path} for object alias - {alias} does not point to a valid object."
            )
        if not isinstance(found, str):
            raise _said(f"Invalid JMES search result type for path:{path}. Only string is allowed.")
        yield alias.replace("/", "_"), found.encode()
