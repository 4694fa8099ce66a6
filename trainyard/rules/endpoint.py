"""Errors about access to the Kubernetes API: ranges, and ways into a private endpoint, that cannot
work."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from trainyard.catalog.aws.address_ranges import is_internet
from trainyard.problems import At, InputError, InputWarning
from trainyard.rules.network import RFC_1918, is_range, within, without_host_bits
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.network import AnyNetwork, ExistingNetworkConfig
from trainyard.settings.reading.yaml_file import as_yaml

CIDRS = "environment.cluster.public_access_cidrs"
EXAMPLE, PORT = "203.0.113.7/32", 8443
"""Values that fixes show: an address that is nobody's (RFC 5737), and a port that is seldom in
use."""
RESERVED = (
    *RFC_1918,
    *map(ipaddress.IPv4Network, ("100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16")),
)
"""Ranges that no caller on the internet has; EKS refuses reserved ranges (user guide,
cluster-endpoint)."""
DOCUMENTATION = tuple(
    map(ipaddress.IPv4Network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"))
)
"""Addresses of examples (RFC 5737)."""
MOST_RANGES = 40
"""Public endpoint access CIDR ranges of a cluster, a quota that AWS does not raise (EKS user guide,
service-quotas)."""
OWN_ADDRESS = "the address that `curl https://checkip.amazonaws.com` prints, with /32"
NO_PUBLIC = "or use a VPN into the VPC, with endpoint: private in the place of public_access_cidrs"
WAYS = ("tunnel_port", "proxy_url", "inside_vpc")


def endpoint_errors(cluster: ClusterConfig) -> Iterator[InputError]:
    yield from _ranges(cluster)
    yield from _ways_in(cluster)
    if cluster.proxy_url is not None:
        yield from _proxy(cluster.proxy_url)


def _ranges(cluster: ClusterConfig) -> Iterator[InputError]:
    listed = cluster.public_access_cidrs
    if cluster.endpoint == "private" and listed:
        yield At(CIDRS).not_set(
            "with endpoint: private",
            got=as_yaml(listed),
            instead="write endpoint: public-and-private",
        )
    if cluster.endpoint != "private" and not listed and cluster.name is None:
        yield At(CIDRS).must(
            "list who may reach the public endpoint",
            got="nothing",
            fix=f"write {OWN_ADDRESS}, such as [{EXAMPLE}]",
            write=[EXAMPLE],
        )
    if len(listed) > MOST_RANGES:
        yield At(CIDRS).must(
            f"list at most {MOST_RANGES} ranges: EKS takes no more",
            got=len(listed),
            fix=f"write wider ranges, such as that of your VPN; {NO_PUBLIC}",
        )
    for cidr in listed:
        if not is_range(cidr):
            nearest = without_host_bits(cidr)
            yield At(CIDRS).must(
                "list IPv4 ranges",
                got=cidr,
                fix=_meant(cidr, nearest) if nearest else f"write a range such as {EXAMPLE}",
                write=[f"{ipaddress.IPv4Interface(cidr).ip}/32" if nearest else EXAMPLE],
            )
        elif within(cidr, RESERVED):
            yield At(CIDRS).must(
                "list public addresses: EKS refuses reserved ranges",
                got=cidr,
                fix=f"write {OWN_ADDRESS}, such as [{EXAMPLE}]; {NO_PUBLIC}",
                write=[EXAMPLE],
            )


def _meant(cidr: str, nearest: str) -> str:
    """Advice where a range has an address within itself: the whole range, or that address alone, may be meant."""
    many = ipaddress.IPv4Network(nearest).num_addresses
    if many == 1:
        return f"write {nearest}"
    return (
        f"write {nearest} for {many:,} addresses, or {ipaddress.IPv4Interface(cidr).ip}/32 for one"
    )


def _ways_in(cluster: ClusterConfig) -> Iterator[InputError]:
    chosen = [way for way in WAYS if getattr(cluster, way)]
    if cluster.endpoint == "private" and not chosen:
        yield At("environment.cluster.endpoint").must(
            "come with a way into the VPC, because nothing outside it reaches a private endpoint",
            got="private, without tunnel_port, proxy_url and inside_vpc",
            fix=f"write endpoint: public-and-private and public_access_cidrs: [{EXAMPLE}] with your"
            f" own address; or add tunnel_port: {PORT} for a tunnel through a system node, proxy_url:"
            " http://<host>:<port> for a proxy, or inside_vpc: true where Pulumi runs inside the VPC or a VPN",
        )
    for second in chosen[1:]:
        yield At(f"environment.cluster.{second}").not_set(
            f"beside {chosen[0]}: the kubeconfig takes one way",
            got=as_yaml(getattr(cluster, second)),
            instead=f"delete {chosen[0]}",
        )
    if cluster.endpoint != "private" and cluster.inside_vpc:
        yield At("environment.cluster.inside_vpc").not_set(
            "with a public endpoint, which Pulumi reaches from outside the VPC",
            got="true",
            instead="write endpoint: private and delete public_access_cidrs",
        )


def _proxy(url: str) -> Iterator[InputError]:
    """Every error of `cluster.proxy_url`. client-go takes these three schemes in `proxy-url`."""
    if re.fullmatch(r"(https?|socks5)://[\w.-]+(:\d{1,5})?/?", url):
        return
    secret, host = "@" in url, re.search(r"[\w.-]+:\d{1,5}(?=/?$)", url)
    example = f"http://{host[0] if host else 'proxy.example.com:3128'}"
    yield At("environment.cluster.proxy_url").must(
        (
            "not contain a user name or a password: the kubeconfig has it, which all who read the stack see"
            if secret
            else "be the URL of a proxy: http://, https:// or socks5:// with a host and a port"
        ),
        got="a URL with an @" if secret else url,
        fix=f"write {example if host else f'one such as {example}'}"
        + "; or name another proxy, where this one asks for a login" * secret,
        write=example,
    )


def _who(wide: Sequence[str]) -> str:
    """Words for everybody with an address in ranges that are wider than any organization's."""
    together = ipaddress.collapse_addresses(map(ipaddress.IPv4Network, wide))
    if any(network.prefixlen == 0 for network in together):
        return "everybody on the internet"
    return f"everybody on the internet with an address in {', '.join(wide)}"


def endpoint_warnings(cluster: ClusterConfig, network: AnyNetwork) -> Iterator[InputWarning]:
    """Warnings about an endpoint that works."""
    if cluster.name is not None:
        return
    if cluster.endpoint == "private":
        yield from _first_update(cluster, isinstance(network, ExistingNetworkConfig))
        return
    ranges = [cidr for cidr in cluster.public_access_cidrs if is_range(cidr)]
    if wide := [cidr for cidr in ranges if is_internet(cidr)]:
        yield At(CIDRS).warning(
            f"{_who(wide)} can reach the API server, though not without credentials; list only"
            " your own addresses"
        )
    for cidr in cluster.public_access_cidrs:
        if within(cidr, DOCUMENTATION):
            yield At(CIDRS).warning(
                f"{cidr} is an address of examples, which nobody has: before `pulumi up` on AWS"
                f" write {OWN_ADDRESS}; otherwise the first `pulumi up` cannot reach the cluster"
            )


def _first_update(cluster: ClusterConfig, existing: bool) -> Iterator[InputWarning]:
    """A warning about a private endpoint that the first `pulumi up` cannot reach. An existing VPC has
    ways in already. A tunnel still needs a node."""
    way = next((way for way in WAYS if getattr(cluster, way)), "inside_vpc")
    if existing and way != "tunnel_port":
        return
    how = {
        "tunnel_port": " and the same tunnel_port; then open the tunnel that the output `tunnel` names",
        "proxy_url": ", without proxy_url unless the proxy reaches the internet",
        "inside_vpc": "",
    }
    makes = "the node that the tunnel goes through" if existing else "the VPC itself"
    yield At("environment.cluster.endpoint").warning(
        "the first `pulumi up` of an environment cannot reach a private endpoint, because it"
        f" creates {makes}; for that one write endpoint: public-and-private with"
        f" public_access_cidrs: [<your address>/32]{how[way]}, write endpoint: private,"
        " delete public_access_cidrs, and run `pulumi up` again"
    )
