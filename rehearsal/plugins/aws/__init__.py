"""The aws plugin: a thin boto3 client of whatever endpoint, region and credentials boto3 finds.

provider: Pulumi's side (check, diff, state). kind: what every resource type has. network, iam, eks, events, storage:
one class a resource type, its token at its head. To support another type, add its class; to support another input of
one, add its name to the class.
"""
