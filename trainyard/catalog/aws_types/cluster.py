"""AWS types of a cluster: EKS, the nodes, whom both trust, and what Karpenter hears."""

from __future__ import annotations

from trainyard.catalog.aws_types.row import AwsType, Finder, When, by_tags

CLUSTER: dict[str, AwsType] = {
    "aws:eks/cluster:Cluster": AwsType(
        cloudformation="AWS::EKS::Cluster",
        when=When.OWN_CLUSTER,
        replaces=(
            "accessConfig.bootstrapClusterCreatorAdminPermissions",
            "bootstrapSelfManagedAddons",
            "kubernetesNetworkConfig.serviceIpv4Cidr",
            "name",
            "roleArn",
        ),
        calls_beside={"read": "eks:ListTagsForResource", "update": "eks:AssociateEncryptionConfig"},
        finder=Finder(
            "eks",
            "describe_cluster",
            {"name": "{name}"},
            items="cluster",
            id="{name}",
            state="status",
        ),
        awaited=True,
        key="encryptionConfig.provider.keyArn",
    ),
    "aws:eks/addon:Addon": AwsType(
        cloudformation="AWS::EKS::Addon",
        when=When.ALWAYS,
        replaces=("addonName", "clusterName"),
        calls_beside={"read": "eks:DescribeAddonVersions eks:ListTagsForResource"},
        finder=Finder(
            "eks",
            "describe_addon",
            {"clusterName": "{clusterName}", "addonName": "{addonName}"},
            items="addon",
            id="{clusterName}:{addonName}",
            state="status",
        ),
        awaited=True,
    ),
    "aws:eks/nodeGroup:NodeGroup": AwsType(
        cloudformation="AWS::EKS::Nodegroup",
        when=When.ALWAYS,
        replaces=(
            "amiType",
            "capacityType",
            "clusterName",
            "diskSize",
            "instanceTypes",
            "launchTemplate.id",
            "nodeGroupName",
            "nodeRoleArn",
            "subnetIds",
        ),
        calls_beside={"read": "eks:ListTagsForResource"},
        finder=Finder(
            "eks",
            "describe_nodegroup",
            {"clusterName": "{clusterName}", "nodegroupName": "{nodeGroupName}"},
            items="nodegroup",
            id="{clusterName}:{nodeGroupName}",
            state="status",
        ),
        awaited=True,
    ),
    "aws:eks/accessEntry:AccessEntry": AwsType(
        cloudformation="AWS::EKS::AccessEntry",
        when=When.ALWAYS,
        replaces=("clusterName", "principalArn", "type"),
        calls_beside={"read": "eks:ListTagsForResource"},
        finder=Finder(
            "eks",
            "describe_access_entry",
            {"clusterName": "{clusterName}", "principalArn": "{principalArn}"},
            id="{clusterName}:{principalArn}",
        ),
    ),
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": AwsType(
        cloudformation="AWS::EKS::AccessEntry",
        replaces=("accessScope", "clusterName", "policyArn", "principalArn"),
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": AwsType(
        cloudformation="AWS::EKS::PodIdentityAssociation",
        when=When.ALWAYS,
        replaces=("clusterName", "namespace", "serviceAccount"),
        calls_beside={"read": "eks:ListPodIdentityAssociations eks:ListTagsForResource"},
        finder=Finder(
            "eks",
            "list_pod_identity_associations",
            {
                "clusterName": "{clusterName}",
                "namespace": "{namespace}",
                "serviceAccount": "{serviceAccount}",
            },
            items="associations",
            id="{clusterName},{associationId}",
        ),
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": AwsType(
        cloudformation="AWS::EC2::LaunchTemplate",
        when=When.ALWAYS,
        replaces=("name",),
        calls_beside={
            "read": "ec2:DescribeLaunchTemplateVersions",
            "update": "ec2:ModifyLaunchTemplate",
        },
        finder=by_tags("describe_launch_templates", "LaunchTemplates", "{LaunchTemplateId}"),
    ),
    "aws:ec2/placementGroup:PlacementGroup": AwsType(
        cloudformation="AWS::EC2::PlacementGroup",
        replaces=("name", "strategy"),
        finder=by_tags(
            "describe_placement_groups", "PlacementGroups", "{GroupName}", state="State"
        ),
    ),
    "aws:iam/role:Role": AwsType(
        cloudformation="AWS::IAM::Role",
        when=When.ALWAYS,
        replaces=("name",),
        calls_beside={
            "read": "iam:ListRoleTags",
            "delete": "iam:ListInstanceProfilesForRole iam:RemoveRoleFromInstanceProfile",
        },
        finder=Finder("iam", "get_role", {"RoleName": "{name}"}, id="{name}"),
    ),
    "aws:iam/rolePolicy:RolePolicy": AwsType(
        cloudformation="AWS::IAM::RolePolicy",
        when=When.ALWAYS,
        replaces=("name", "role"),
        finder=Finder(
            "iam",
            "get_role_policy",
            {"RoleName": "{role}", "PolicyName": "{name}"},
            id="{role}:{name}",
        ),
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": AwsType(
        cloudformation="AWS::IAM::Role",
        when=When.ALWAYS,
        replaces=("policyArn", "role"),
        calls={
            "create": "iam:AttachRolePolicy",
            "read": "iam:ListAttachedRolePolicies",
            "delete": "iam:DetachRolePolicy",
        },
        finder=Finder(
            "iam",
            "list_attached_role_policies",
            {"RoleName": "{role}"},
            pages="Marker",
            items="AttachedPolicies",
            matches={"PolicyArn": "{policyArn}"},
            id="{role}/{policyArn}",
        ),
    ),
    "aws:iam/instanceProfile:InstanceProfile": AwsType(
        cloudformation="AWS::IAM::InstanceProfile",
        when=When.ALWAYS,
        replaces=("name",),
        calls_beside={
            "create": "iam:TagInstanceProfile",
            "read": "iam:ListInstanceProfileTags",
            "update": "iam:TagInstanceProfile iam:UntagInstanceProfile",
        },
        finder=Finder(
            "iam", "get_instance_profile", {"InstanceProfileName": "{name}"}, id="{name}"
        ),
    ),
    "aws:sqs/queue:Queue": AwsType(
        cloudformation="AWS::SQS::Queue",
        when=When.ALWAYS,
        replaces=("name",),
        calls_beside={"read": "sqs:GetQueueUrl"},
        finder=Finder("sqs", "get_queue_url", {"QueueName": "{name}"}, id="{QueueUrl}"),
        key="kmsMasterKeyId",
    ),
    "aws:sqs/queuePolicy:QueuePolicy": AwsType(
        cloudformation="AWS::SQS::QueuePolicy",
        when=When.ALWAYS,
        replaces=("queueUrl",),
        calls_beside={"read": "sqs:GetQueueAttributes"},
    ),
    "aws:cloudwatch/eventRule:EventRule": AwsType(
        cloudformation="AWS::Events::Rule",
        when=When.ALWAYS,
        replaces=("name",),
        finder=Finder("events", "describe_rule", {"Name": "{name}"}, id="{Name}"),
    ),
    "aws:cloudwatch/eventTarget:EventTarget": AwsType(
        cloudformation="AWS::Events::Rule",
        when=When.ALWAYS,
        replaces=("rule", "targetId"),
        finder=Finder(
            "events",
            "list_targets_by_rule",
            {"Rule": "{rule}"},
            items="Targets",
            matches={"Id": "{targetId}"},
            id="{rule}/{targetId}",
        ),
    ),
}
