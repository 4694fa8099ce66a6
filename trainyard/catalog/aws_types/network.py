"""AWS types of a network: the VPC, who reaches whom in it, and the log of its connections."""

from __future__ import annotations

from trainyard.catalog.aws_types.row import AwsType, Finder, When, by_tags

_INTERFACES = "ec2:DescribeNetworkInterfaces ec2:DetachNetworkInterface ec2:DeleteNetworkInterface"
"""Calls that look for interfaces that a service has left behind."""
_RULE = by_tags("describe_security_group_rules", "SecurityGroupRules", "{SecurityGroupRuleId}")
_RULE_CALLS = {
    "create": "ec2:CreateTags",
    "update": "ec2:ModifySecurityGroupRules ec2:CreateTags ec2:DeleteTags",
}
NETWORK: dict[str, AwsType] = {
    "aws:ec2/vpc:Vpc": AwsType(
        cloudformation="AWS::EC2::VPC",
        when=When.OWN_NETWORK,
        replaces=("cidrBlock", "instanceTenancy"),
        calls_beside={"read": "ec2:DescribeRouteTables"},
        finder=by_tags("describe_vpcs", "Vpcs", "{VpcId}", state="State"),
    ),
    "aws:ec2/subnet:Subnet": AwsType(
        cloudformation="AWS::EC2::Subnet",
        when=When.OWN_NETWORK,
        replaces=("availabilityZone", "cidrBlock", "vpcId"),
        calls_beside={"delete": _INTERFACES},
        finder=by_tags("describe_subnets", "Subnets", "{SubnetId}", state="State"),
    ),
    "aws:ec2/internetGateway:InternetGateway": AwsType(
        cloudformation="AWS::EC2::InternetGateway",
        when=When.WAY_OUT,
        replaces=(),
        calls_beside={
            "create": "ec2:AttachInternetGateway",
            "update": "ec2:AttachInternetGateway ec2:DetachInternetGateway",
            "delete": "ec2:DetachInternetGateway",
        },
        finder=by_tags("describe_internet_gateways", "InternetGateways", "{InternetGatewayId}"),
    ),
    "aws:ec2/eip:Eip": AwsType(
        cloudformation="AWS::EC2::EIP",
        when=When.WAY_OUT,
        replaces=("domain",),
        calls_beside={"read": "ec2:DescribeAddressesAttribute"},
        finder=by_tags("describe_addresses", "Addresses", "{AllocationId}"),
    ),
    "aws:ec2/natGateway:NatGateway": AwsType(
        cloudformation="AWS::EC2::NatGateway",
        when=When.WAY_OUT,
        replaces=("allocationId", "connectivityType", "subnetId"),
        finder=by_tags(
            "describe_nat_gateways",
            "NatGateways",
            "{NatGatewayId}",
            state="State",
            filters="Filter",
        ),
        awaited=True,
    ),
    "aws:ec2/routeTable:RouteTable": AwsType(
        cloudformation="AWS::EC2::RouteTable",
        when=When.OWN_NETWORK,
        replaces=("vpcId",),
        calls_beside={"delete": "ec2:DisassociateRouteTable"},
        finder=by_tags("describe_route_tables", "RouteTables", "{RouteTableId}"),
    ),
    "aws:ec2/route:Route": AwsType(
        cloudformation="AWS::EC2::Route",
        when=When.WAY_OUT,
        replaces=("destinationCidrBlock", "routeTableId"),
        finder=Finder(
            "ec2",
            "describe_route_tables",
            {"RouteTableIds": ["{routeTableId}"]},
            items="RouteTables.0.Routes",
            matches={"DestinationCidrBlock": "{destinationCidrBlock}"},
            id="{routeTableId}_{destinationCidrBlock}",
        ),
    ),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": AwsType(
        cloudformation="AWS::EC2::SubnetRouteTableAssociation",
        when=When.OWN_NETWORK,
        replaces=("routeTableId", "subnetId"),
        finder=Finder(
            "ec2",
            "describe_route_tables",
            {"RouteTableIds": ["{routeTableId}"]},
            items="RouteTables.0.Associations",
            matches={"SubnetId": "{subnetId}"},
            id="{subnetId}/{routeTableId}",
        ),
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": AwsType(
        cloudformation="AWS::EC2::VPCEndpoint",
        when=When.ENDPOINTS,
        replaces=("serviceName", "vpcEndpointType", "vpcId"),
        # For the private names of an interface endpoint (Service Authorization Reference, CreateVpcEndpoint,
        # dependent actions). Terraform's provider reads its interfaces.
        calls_beside={
            "create": "route53:AssociateVPCWithHostedZone",
            "read": "ec2:DescribePrefixLists ec2:DescribeNetworkInterfaces",
        },
        finder=by_tags("describe_vpc_endpoints", "VpcEndpoints", "{VpcEndpointId}", state="State"),
        awaited=True,
    ),
    "aws:ec2/securityGroup:SecurityGroup": AwsType(
        cloudformation="AWS::EC2::SecurityGroup",
        when=When.ALWAYS,
        replaces=("description", "name", "vpcId"),
        # `trainyard repair` ends nodes that hold the group after their cluster.
        calls_beside={"delete": f"{_INTERFACES} ec2:TerminateInstances"},
        finder=by_tags("describe_security_groups", "SecurityGroups", "{GroupId}"),
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": AwsType(
        cloudformation="AWS::EC2::SecurityGroupIngress",
        when=When.ALWAYS,
        replaces=("securityGroupId",),
        calls_beside=_RULE_CALLS,
        finder=_RULE,
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": AwsType(
        cloudformation="AWS::EC2::SecurityGroupEgress",
        when=When.ALWAYS,
        replaces=("securityGroupId",),
        calls_beside=_RULE_CALLS,
        finder=_RULE,
    ),
    "aws:ec2/flowLog:FlowLog": AwsType(
        cloudformation="AWS::EC2::FlowLog",
        replaces=("iamRoleArn", "logDestination", "logDestinationType", "trafficType", "vpcId"),
        calls={
            "create": "ec2:CreateFlowLogs ec2:CreateTags iam:PassRole",
            "read": "ec2:DescribeFlowLogs",
            "update": "ec2:CreateTags ec2:DeleteTags",
            "delete": "ec2:DeleteFlowLogs",
        },
        finder=by_tags("describe_flow_logs", "FlowLogs", "{FlowLogId}", filters="Filter"),
    ),
}
