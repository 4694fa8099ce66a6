"""The kubernetes plugin: objects and Helm releases of whatever cluster a provider's kubeconfig
names.

provider: the provider's configuration, and who handles a resource. kubeconfig: the cluster and its
client. objects: the life of an object; differences: what changed; kinds: what takes a new object
and when one is ready; waiting: until then. helm: releases, through the real helm. All of it after
pulumi-kubernetes 4.34.2, failures included.
"""
