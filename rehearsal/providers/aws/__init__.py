"""The aws plugin: a thin boto3 client of whatever endpoint, region and credentials boto3 finds.

provider: Pulumi's side (check, diff, state). resource_type: what every resource type has.
comparison: which values count as the same. network, launch_templates, iam, eks, events, storage,
buckets: a row a resource type. To support another type or another input, see resource_type.
"""
