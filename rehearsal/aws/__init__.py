"""The embedded AWS account: moto's wire protocols, made as strict and as slow as AWS.

server: one request, from wire to log. wire: AWS's protocols. operations: which function answers,
checks or follows an operation. backends: moto, loaded lean and mended. clock, faults, identity,
principals: what every operation shares. network, sharing, endpoints, capacity, instances,
launch_templates, quotas, images: EC2. parameters: Systems Manager. storage, lustre_limits, backups: FSx.
efs, services: EFS and the small ones. eks, access, nodegroups, addons, keeper: EKS. world: endpoints of
the rehearsal's own parts. A new operation is a decorated function in one of them.
"""
