"""Ranges of addresses that belong to the internet rather than to one organization."""

from __future__ import annotations

import ipaddress

WIDEST = {4: 8, 6: 16}
"""IP version → the shortest prefix that one organization has. IANA has given single organizations /8s of
IPv4 and nothing larger; of IPv6 it gives a /12 to a whole region (IANA IPv4 Address Space Registry, IPv6
Global Unicast Address Assignments). So 0.0.0.0/1 and 128.0.0.0/1 are together what 0.0.0.0/0 is."""


def is_internet(cidr: str) -> bool:
    """True for a range that is wider than any organization's; False for a text that is no range."""
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False
    return network.prefixlen < WIDEST[network.version]
