"""The command that opens a tunnel to a cluster's private endpoint, through a system node.

AWS Systems Manager carries the connections (document
AWS-StartPortForwardingSessionToRemoteHost); nothing listens on the internet. The node reaches the
endpoint because the cluster's own security group lets its members reach one another.
"""

from __future__ import annotations

from trainyard.plans.access import AccessPlan

DOCUMENT = "AWS-StartPortForwardingSessionToRemoteHost"


def host_and_port(endpoint: str) -> tuple[str, str]:
    """Host and port of the API server's URL, which has neither path nor user."""
    host, _, port = endpoint.removeprefix("https://").partition(":")
    return host, port or "443"


def tunnel_command(access: AccessPlan, node_group: str, endpoint: str, port: int) -> str:
    """One line for a shell. `endpoint`: the URL of the API server; `port`: of this machine."""
    at, (host, remote) = f" --region {access.region}", host_and_port(endpoint)
    at += f" --profile {access.profile}" if access.profile else ""
    filters = (
        f"Name=tag:eks:nodegroup-name,Values={node_group} Name=instance-state-name,Values=running"
    )
    node = (
        f"aws ec2 describe-instances{at} --filters {filters}"
        " --query 'Reservations[0].Instances[0].InstanceId' --output text"
    )
    parameters = f"host={host},portNumber={remote},localPortNumber={port}"
    return (
        f'aws ssm start-session{at} --target "$({node})" --document-name {DOCUMENT}'
        f" --parameters {parameters}"
    )
