"""One node's kubelet: it watches the pods bound to its node and gives each a Pod; beats; shows
devices while their plugins run."""

from __future__ import annotations

import math
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

from rehearsal import paths
from rehearsal.aws.identity import ACCOUNT
from rehearsal.kube import Api, ApiError, Object
from rehearsal.kubelet import images, node, tokens
from rehearsal.kubelet.aws import TROUBLE, Account, AwsError
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.node import EFA, GPU
from rehearsal.kubelet.pod import STRATEGIC, Pod

HEARTBEAT_SECONDS = 8.0
"""Between two leases of the node: under the 40 s after which a node is lost."""
HEALTH_LOOK_SECONDS = 0.5
"""Between two looks at the network, the devices and the health of the node."""
WATCH_SECONDS, RETRY_SECONDS = 60, 0.5
DNS_SECONDS = 2.0
"""Seconds after which an answer about CoreDNS is too old."""
NO_NETWORK = "container runtime network not ready: cni plugin not initialized"
PLUGINS = {GPU: images.NVIDIA_PLUGIN, EFA: images.EFA_PLUGIN}
REFERENCE = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::\d+)?/)?[a-z0-9]+(?:(?:[._/]|__|-+)[a-z0-9]+)*"
    r"(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
ECR = re.compile(r"\d{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com/")
OWN_REGISTRY = re.compile(rf"{ACCOUNT}\.dkr\.ecr\.[a-z0-9-]+\.amazonaws\.com/([^:@]+)[:@]?(.*)")
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AccessKeyId",
    "AWS_SECRET_ACCESS_KEY": "SecretAccessKey",
    "AWS_SESSION_TOKEN": "SessionToken",
}


@dataclass(kw_only=True)
class Kubelet:
    """One node's kubelet."""

    api: Api
    account: Account
    world: paths.World
    instance: Object
    """As EC2 describes it."""
    config: node.NodeConfig
    address: str
    capacity: dict[str, str]
    """Without devices: those come with their plugin's pod."""
    devices: dict[str, int]
    pods: dict[str, Pod] = field(default_factory=dict)
    unhealthy_gpus: int = 0
    """Number of GPUs that the device plugin has seen fail."""
    health: Callable[[], list[Object]] = list
    """Conditions that somebody else on the node keeps."""
    _dead: bool = False
    _dns: tuple[bool, float] = (False, -math.inf)
    """True where CoreDNS has an endpoint, and the time at which that was asked."""
    _assigns: bool = False
    """True where the VPC CNI may assign addresses; the next field says why it may not."""
    _refused: str = ""
    _headless: set[str] = field(default_factory=set)
    """Services, as namespace/name, that were seen to be headless."""
    _shown: dict[str, int] = field(default_factory=dict)
    _ready_since: tuple[bool, str] = (False, "")
    _version: str = ""
    _pulled: set[str] = field(default_factory=set)
    _last_line: str = ""

    @property
    def id(self) -> str:
        return self.instance["instanceId"]

    @property
    def name(self) -> str:
        """The node's."""
        return self.instance["privateDnsName"]

    @property
    def zone(self) -> str:
        return self.instance["placement"]["availabilityZone"]

    @property
    def folder(self) -> Path:
        return paths.NODES / self.id

    @property
    def allocatable(self) -> dict[str, str]:
        return node.allocatable(self.capacity)

    def pull(self, image: str) -> None:
        """NotReady, in kubelet's and containerd's words, for a malformed name, for a registry that the
        node does not reach, and for what the account's own registry does not hold; every other
        registry has everything. What was pulled once is there."""
        if image in self._pulled:
            return
        if not REFERENCE.fullmatch(image):
            raise NotReady(
                f'Failed to apply default image tag "{image}": couldn\'t parse image name'
                f' "{image}": invalid reference format',
                "InvalidImageName",
            )
        for to in self._on_the_way(image):
            if wall := self.account.blocked(self.id, to):
                host = image.partition("/")[0]
                raise NotReady(
                    f'failed to pull and unpack image "{image}": failed to resolve reference'
                    f' "{image}": failed to do request: Head "https://{host}": {to}: i/o timeout:'
                    f" {wall}",
                    "ErrImagePull",
                )
        try:
            if own := OWN_REGISTRY.fullmatch(image):
                which = {"imageDigest" if "@" in image else "imageTag": own[2] or "latest"}
                found = self.account.as_instance(self.id).ecr(
                    "BatchGetImage", {"repositoryName": own[1], "imageIds": [which]}
                )
                if not found["images"]:
                    raise AwsError("ImageNotFoundException")
        except AwsError as error:
            why = (
                "unexpected status: 403 Forbidden" if "AccessDenied" in str(error) else "not found"
            )
            raise NotReady(
                f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}":'
                f' failed to resolve reference "{image}": {image}: {why}',
                "ErrImagePull",
            ) from None
        self._pulled.add(image)

    def _on_the_way(self, image: str) -> tuple[str, ...]:
        """Places a pull goes to: of ECR's registries in the region two APIs, and S3 for layers."""
        found = ECR.match(image)
        if found and found[1] == self.account.region:
            return ("aws:ecr.api", "aws:ecr.dkr", "aws:s3")
        return ("internet",)

    def unreached(self, port: int) -> str:
        """Obstacle between the API server and a port of this node; empty where none is."""
        return self.account.unreached(self.id, self.config.cluster, port)

    def names_pods(self, namespace: str, service: str) -> bool:
        """True where DNS works, and knows pods by this headless service."""
        works, service_of = self._dns_works(), f"{namespace}/{service}"
        if works and service_of not in self._headless:
            found = self._found(namespace, "services", service)
            if found.get("spec", {}).get("clusterIP") == "None":
                self._headless.add(service_of)
        return works and service_of in self._headless

    def services(self, namespace: str) -> list[Object]:
        """The services that a pod of a namespace can serve, where DNS and kube-proxy work."""
        if not self._dns_works() or not self.has_daemon(images.SERVICES):
            return []
        return self.api.request("GET", f"/api/v1/namespaces/{namespace}/services")["items"]

    def _dns_works(self) -> bool:
        if time.monotonic() - self._dns[1] > DNS_SECONDS:
            servers = self._found("kube-system", "endpoints", "kube-dns").get("subsets", ())
            self._dns = any(part.get("addresses") for part in servers), time.monotonic()
        return self._dns[0]

    def _found(self, namespace: str, kind: str, name: str) -> Object:
        """The object, or nothing where there is none."""
        try:
            return self.api.request("GET", f"/api/v1/namespaces/{namespace}/{kind}/{name}")
        except ApiError as error:
            if error.code != 404:
                raise
            return {}

    def log(self, line: str) -> None:
        """One line on standard error, not twice in a row."""
        if line != self._last_line:
            self._last_line = line
            print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)

    def has_daemon(self, image: str) -> bool:
        """True where a DaemonSet's pod of this image runs here."""
        return self.daemon(image) is not None

    def daemon(self, image: str) -> Object | None:
        """That pod."""
        running = [pod for pod in list(self.pods.values()) if pod.uses(image)]
        return next((p.obj for p in running if images.belongs_to(p.obj, "DaemonSet")), None)

    def as_pod(self, pod: Object) -> Api:
        """The API server, with the token of the pod's service account."""
        token = tokens.signed(self.api, pod)
        authority = str(self.folder / "ca.crt")
        return Api(self.config.endpoint, ca_file=authority, token=lambda: token)

    def find(self, name: str) -> Pod | None:
        """A pod by namespace/name."""
        return next((p for p in list(self.pods.values()) if p.name == name), None)

    def pod_identity(self, pod: Object) -> dict[str, str]:
        """Credentials of the pod's association, if there is one and the agent that hands them out
        runs here."""
        if not self.has_daemon(images.POD_IDENTITY_AGENT):
            return {}
        if wall := self.account.blocked(self.id, "aws:eks-auth"):
            self.log(f"eks-pod-identity-agent: dial eks-auth: i/o timeout: {wall}")
            return {}
        query = urlencode(
            {
                "cluster": self.config.cluster,
                "namespace": pod["metadata"]["namespace"],
                "service_account": pod["spec"].get("serviceAccountName", "default"),
            }
        )
        found = self.account.private(f"/pod-identity?{query}")
        return {variable: found[key] for variable, key in CREDENTIALS.items()} if found else {}

    def die(self) -> None:
        """It says and hears nothing any more; the processes of its pods go on."""
        self._dead = True
        self.api = Api("https://127.0.0.1:1")

    def fall_silent(self, seconds: float) -> None:
        """Its connection to the API server is dead for so long, as when that server has died: nothing comes
        through in either direction, and the processes of its pods go on."""
        silent = Api("https://127.0.0.1:1")
        alive, self.api, self._dead = self.api, silent, True

        def speak() -> None:
            if self.api is silent:  # it may have died since
                self.api, self._dead = alive, False

        again = threading.Timer(seconds, speak)
        again.daemon = True
        again.start()

    # ---- pods
    # ----------------------------------------------------------------------------------------------

    def watch(self) -> None:
        """Follow the pods of this node for ever."""
        while True:
            try:
                self._follow()
            except TROUBLE as error:
                self.log(f"pods: {error}")
                time.sleep(RETRY_SECONDS)

    def _follow(self) -> None:
        path = f"/api/v1/pods?{urlencode({'fieldSelector': f'spec.nodeName={self.name}'})}"
        listed = self.api.request("GET", path)
        for uid in set(self.pods) - {pod["metadata"]["uid"] for pod in listed["items"]}:
            self._forget(uid)
        for pod in listed["items"]:
            self._see(pod)
        version = listed["metadata"]["resourceVersion"]
        for event in self.api.watch(
            f"{path}&resourceVersion={version}", timeout_seconds=WATCH_SECONDS
        ):
            if self._dead:
                raise OSError("this kubelet hears nothing")
            if event["type"] == "ERROR":
                raise ApiError(event["object"].get("code", 500), event["object"])
            if event["type"] == "DELETED":
                self._forget(event["object"]["metadata"]["uid"])
            else:
                self._see(event["object"])

    def _see(self, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        if uid in self.pods:
            return self.pods[uid].update(obj)
        self.pods[uid] = Pod(obj, self)
        threading.Thread(target=self.pods[uid].run, daemon=True).start()

    def _forget(self, uid: str) -> None:
        if pod := self.pods.pop(uid, None):
            pod.update(None)

    # ---- the node
    # ----------------------------------------------------------------------------------------------

    def register(self) -> None:
        """Try as long as the instance lives; what a refusal says goes to the log, as on AWS."""
        starting = node.ready_condition(False, "kubelet is starting", node.now())
        wanted = node.node(self.config, self.instance)
        while True:
            try:
                self.api.request(
                    "POST", "/api/v1/nodes", wanted | {"status": self._status({}, starting)}
                )
                return self.log(f"registered node {self.name}")
            except TROUBLE as error:
                if isinstance(error, ApiError) and error.code == 409:
                    return self.log(f"node {self.name} is registered already")
                self.log(f"Unable to register node with API server: {error}")
            time.sleep(RETRY_SECONDS)

    def heartbeat(self) -> None:
        """Renew lease and status for ever; a change is told at once. Without the VPC CNI's pod a
        node is not ready."""
        told, beaten = None, 0.0
        while True:
            health, broken = self.health(), self.unhealthy_gpus
            state = self._no_network(), self._shown_devices(), health, broken
            if state != told or time.monotonic() - beaten > HEARTBEAT_SECONDS:
                try:
                    self._beat(*state[:3])
                    told, beaten = state, time.monotonic()
                except TROUBLE as error:
                    self.log(f"heartbeat: {error}")
            time.sleep(HEALTH_LOOK_SECONDS)

    def _shown_devices(self) -> dict[str, int]:
        """Devices that plugins registered: 0 where the plugin's pod went away again."""
        running = {
            kind: self.devices[kind] for kind, image in PLUGINS.items() if self.has_daemon(image)
        }
        if self.config.bottlerocket:
            running[GPU] = self.devices[GPU]
        self._shown = dict.fromkeys(self._shown, 0) | running
        return self._shown

    def _no_network(self) -> str:
        """Reason why pods get no addresses: the VPC CNI's pod does not run here, or its role may
        not assign any. That is asked until it may, since the CNI then holds addresses."""
        if (cni := self.daemon(images.NETWORK)) is None:
            return NO_NETWORK
        if not self._assigns:
            first = (self.instance.get("networkInterfaceSet") or [{}])[0]
            interface = first.get("networkInterfaceId", "")
            try:
                keys = self.pod_identity(cni)
                self._refused = self.account.assigns(self.id, interface, keys)
            except TROUBLE as error:
                self._refused = str(error)
            self._assigns = not self._refused
        return f"{NO_NETWORK}: {self._refused}" if self._refused else ""

    def _beat(self, no_network: str, shown: dict[str, int], health: list[Object]) -> None:
        ready = not no_network
        if self._ready_since[0] != ready or not self._ready_since[1]:
            self._ready_since = ready, node.now()
        message = no_network or "kubelet is posting ready status"
        self.api.apply(
            {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.name, "namespace": "kube-node-lease"},
                "spec": {
                    "holderIdentity": self.name,
                    "leaseDurationSeconds": 40,
                    "renewTime": node.now()[:-1] + ".000000Z",
                },
            },
            manager="kubelet",
        )
        told = node.ready_condition(ready, message, self._ready_since[1])
        status = self._status(shown, told, *health)
        self.api.request(
            "PATCH", f"/api/v1/nodes/{self.name}/status", {"status": status}, content_type=STRATEGIC
        )

    def _status(self, shown: dict[str, int], *conditions: Object) -> Object:
        """The version is the control plane's at boot: an image is of one version for ever."""
        self._version = self._version or self.api.request("GET", "/version")["gitVersion"]
        given = self.capacity | {kind: str(count) for kind, count in shown.items()}
        told = node.status(
            self.instance, self.address, self._version, given, list(conditions), self.unhealthy_gpus
        )
        if self.config.bottlerocket:
            told["nodeInfo"]["osImage"] = "Bottlerocket OS (rehearsed)"
        return told
