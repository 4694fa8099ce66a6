"""Pulumi plugins of the rehearsal: thin clients of whatever AWS endpoint and kubeconfig they are
given.

base: the gRPC side shared by the resource plugins. aws, kubernetes (with helm), eks: one plugin
each. language: runs the Python program. install: puts all of them where the engine looks for them.
"""
