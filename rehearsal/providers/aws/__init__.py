"""The aws plugin: a thin boto3 client of whatever endpoint, region and credentials boto3 finds.

provider: Pulumi's side (check, diff, state). kind: what every resource type has. meaning: what
counts as the same. network, launch_templates, iam, eks, events, storage: a row a resource type. To support another
type or another input, see kind.
"""
