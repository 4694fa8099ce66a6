"""The questions that `trainyard check --live` asks the API server of an existing cluster, with the rights of who
deploys. They read names and owners, of DaemonSets what they mount, tolerate and select, of CoreDNS the addresses, and
the variables of the VPC CNI.

Sources: EKS user guide, cluster-auth (the token is an address of STS, signed as `aws eks get-token`
signs it); Kubernetes API concepts, metadata-only fetches and chunking.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainyard.catalog.chart_objects import KINDS, WORKLOADS, ObjectName
from trainyard.live.questions.caller import TIMEOUTS, Caller, NotAnswered

DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
"""Folder in which a device plugin meets its kubelet (Kubernetes, device-plugins)."""
DNS_PODS, DNS_LABEL = "/api/v1/namespaces/kube-system/pods", "k8s-app=kube-dns"
"""Where the API server lists the pods of DNS, and the label by which the service kube-dns selects them (Kubernetes,
cluster/addons/dns/coredns; EKS's add-on coredns keeps both)."""
CNI, CNI_SETS = "aws-node", "/apis/apps/v1/namespaces/kube-system/daemonsets"
"""DaemonSet and container of the VPC CNI (amazon-vpc-cni-k8s, charts/aws-vpc-cni), and where the API server lists the
first."""
ENI_CONFIGS = "/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs"
"""Where it lists the ENIConfigs of custom networking (amazon-vpc-cni-k8s, charts/aws-vpc-cni/crds)."""
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
PAGE = 500
"""Objects of one answer."""
RELEASE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
"""Annotations of whatever Helm installs (helm.sh, three ways: validate ownership)."""


@dataclass(frozen=True, kw_only=True)
class OwnerFound:
    """Owner of an object, as far as the object tells."""

    release: tuple[str, str] | None
    """Name and namespace of its Helm release; None without one."""
    managers: tuple[str, ...]
    """Programs that have written it, such as kubectl or pulumi-kubernetes."""


@dataclass(frozen=True, kw_only=True)
class PluginFound:
    """A DaemonSet that mounts the folder of device plugins."""

    name: str
    namespace: str
    images: tuple[str, ...]
    tolerated: tuple[str, ...]
    """Keys of the taints that its pods tolerate; an empty key stands for all."""
    owner: OwnerFound
    selected: tuple[str, ...] = ()
    """Labels of nodes that its pods select."""


@dataclass(frozen=True, kw_only=True)
class DnsPodFound:
    """A pod that answers the cluster's DNS."""

    address: str
    node: str
    """Address of its node."""


class ClusterQuestions(Caller):
    """Each method is a question."""

    def cluster_objects(
        self, cluster: str, names: Iterable[ObjectName]
    ) -> dict[ObjectName, OwnerFound]:
        """Objects of `names` that the cluster has. NotAnswered where its API server cannot be
        reached from here, or says no."""
        wanted = set(names)
        listed = sorted({(one.kind, one.namespace) for one in wanted})
        with self._api_server(cluster) as server:
            found = [each for kind, space in listed for each in server.objects(kind, space)]
        return {name: owner for name, owner in found if name in wanted}

    def device_plugins(self, cluster: str) -> list[PluginFound]:
        """DaemonSets of all namespaces that give nodes devices. NotAnswered as above."""
        with self._api_server(cluster) as server:
            return [*server.device_plugins()]

    def cluster_nodes(self, cluster: str, selector: str) -> list[str]:
        """Names of the nodes with these labels. NotAnswered as above."""
        with self._api_server(cluster) as server:
            return [*server.nodes(selector)]

    def dns_pods(self, cluster: str) -> list[DnsPodFound]:
        """The pods behind the service kube-dns that have an address. NotAnswered as above."""
        with self._api_server(cluster) as server:
            return [*server.dns_pods()]

    def cni_env(self, cluster: str) -> dict[str, str]:
        """The variables of the VPC CNI; empty where the cluster has none. NotAnswered as above."""
        with self._api_server(cluster) as server:
            return server.cni_env()

    def eni_configs(self, cluster: str) -> list[str]:
        """Names of the ENIConfigs of the VPC CNI. NotAnswered as above, and where the cluster has no such kind."""
        with self._api_server(cluster) as server:
            return [*server.eni_configs()]

    @contextmanager
    def _api_server(self, cluster: str) -> Iterator[_ApiServer]:
        asked = self._ask("eks:DescribeCluster", name=cluster)["cluster"]
        with TemporaryDirectory() as folder:
            authority = Path(folder) / "ca.crt"
            authority.write_bytes(base64.b64decode(asked["certificateAuthority"]["data"]))
            yield _ApiServer(
                asked["endpoint"], self._token(cluster), str(authority), self._access.proxy_url
            )

    def _token(self, cluster: str) -> str:
        """A token of the cluster."""
        from botocore.exceptions import BotoCoreError

        # A client of its own: what it signs is signed for the cluster.
        client = self._session.create_client("sts", self._access.region)
        client.meta.events.register(
            "before-sign.sts.GetCallerIdentity",
            lambda request, **_: request.headers.add_header("x-k8s-aws-id", cluster),
        )
        try:
            url = client.generate_presigned_url(
                "get_caller_identity", ExpiresIn=60, HttpMethod="GET"
            )
        except BotoCoreError as error:
            raise NotAnswered(f"sts:GetCallerIdentity: {error}") from error
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


class _ApiServer:
    """An API server, and with what it is asked."""

    def __init__(self, endpoint: str, token: str, authority: str, proxy: str | None) -> None:
        """`authority`: path of the certificate that its own is signed with."""
        from botocore.httpsession import URLLib3Session
        from botocore.utils import get_environ_proxies

        self._endpoint, self._token = endpoint, token
        make: Any = URLLib3Session  # its types know no path of a certificate
        self._session = make(
            verify=authority,
            proxies={"https": proxy} if proxy else get_environ_proxies(endpoint),
            timeout=(TIMEOUTS["connect_timeout"], TIMEOUTS["read_timeout"]),
        )

    def objects(self, kind: str, namespace: str) -> Iterator[tuple[ObjectName, OwnerFound]]:
        """All objects of a kind. `namespace`: empty for a kind in none."""
        path = KINDS.get(kind) or f"/apis/apps/v1/namespaces/{namespace}/{WORKLOADS[kind]}"
        for item in self._listed(path, METADATA):
            meta = item["metadata"]
            yield ObjectName(kind, meta["name"], namespace), _owner(meta)

    def device_plugins(self) -> Iterator[PluginFound]:
        """DaemonSets that mount the folder of device plugins."""
        for item in self._listed("/apis/apps/v1/daemonsets", "application/json"):
            meta, pod = item["metadata"], item["spec"]["template"]["spec"]
            folders = [one.get("hostPath", {}).get("path", "") for one in pod.get("volumes", ())]
            if any(folder.rstrip("/") == DEVICE_PLUGINS for folder in folders):
                yield PluginFound(
                    name=meta["name"],
                    namespace=meta["namespace"],
                    images=tuple(one["image"] for one in pod["containers"]),
                    tolerated=tuple(one.get("key", "") for one in pod.get("tolerations", ())),
                    owner=_owner(meta),
                    selected=tuple(pod.get("nodeSelector", ())),
                )

    def nodes(self, selector: str) -> Iterator[str]:
        """Names of nodes."""
        for item in self._listed("/api/v1/nodes", METADATA, labelSelector=selector):
            yield item["metadata"]["name"]

    def eni_configs(self) -> Iterator[str]:
        """Names of ENIConfigs."""
        for item in self._listed(ENI_CONFIGS, METADATA):
            yield item["metadata"]["name"]

    def dns_pods(self) -> Iterator[DnsPodFound]:
        """Pods of DNS with an address."""
        for item in self._listed(DNS_PODS, "application/json", labelSelector=DNS_LABEL):
            status = item.get("status", {})
            if status.get("podIP") and status.get("hostIP"):
                yield DnsPodFound(address=status["podIP"], node=status["hostIP"])

    def cni_env(self) -> dict[str, str]:
        """Variables of the container aws-node, as far as they are plain values."""
        for item in self._listed(
            CNI_SETS, "application/json", fieldSelector=f"metadata.name={CNI}"
        ):
            for container in item["spec"]["template"]["spec"]["containers"]:
                if container["name"] == CNI:
                    return {e["name"]: e["value"] for e in container.get("env", ()) if "value" in e}
        return {}

    def _listed(self, path: str, accept: str, **asked: str) -> Iterator[dict[str, Any]]:
        """All pages of a list. `asked`: parameters of the query."""
        more: str | None = ""
        while more is not None:
            query = asked | {"limit": str(PAGE), **({"continue": more} if more else {})}
            answer = self._get(path, query, accept)
            yield from answer["items"] or ()  # null where there is none
            more = answer["metadata"].get("continue") or None

    def _get(self, path: str, query: Mapping[str, str], accept: str) -> dict[str, Any]:
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError

        headers = {"Authorization": f"Bearer {self._token}", "Accept": accept}
        request = AWSRequest(
            method="GET", url=f"{self._endpoint}{path}", params=query, headers=headers
        )
        try:
            answer = self._session.send(request.prepare())
            if answer.status_code == 200:
                return json.loads(answer.content)
        except (BotoCoreError, ValueError) as error:
            raise NotAnswered(f"{self._endpoint}: {type(error).__name__}") from error
        raise NotAnswered(f"{self._endpoint}{path}: HTTP status {answer.status_code}")


def _owner(meta: Mapping[str, Any]) -> OwnerFound:
    annotations = meta.get("annotations") or {}
    release, namespace = (annotations.get(name) for name in RELEASE)
    return OwnerFound(
        release=(release, namespace or "") if release else None,
        managers=tuple(dict.fromkeys(one["manager"] for one in meta.get("managedFields", ()))),
    )
