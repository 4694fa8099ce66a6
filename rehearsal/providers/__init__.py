"""Pulumi plugins of the rehearsal: thin clients of whatever AWS endpoint and kubeconfig they are
given.

Shared by the resource plugins: plugin, what one is; call, a request of the engine; problems, why it
cannot be done; protocol and wire, the gRPC side. aws, kubernetes (with helm), eks: one plugin each.
language: runs the Python program. install: puts all of them where the engine looks for them.
"""
