"""Steps of a node before its kubelet starts, so that it mounts Lustre: over TCP with the client's programs
and options, or over EFA; where that fails, over TCP.

Steps and figures: FSx for Lustre user guide, configure-efa-clients (2026-11), and EKS user guide,
fsx-csi-tuning-efa and fsx-csi-tuning-non-efa (2026-11), without what they do for other systems. The AMI has
EFA's driver, and of the Lustre client only the modules (amazon-eks-ami, 2026-07). Without its programs a
mount works, but the kernel cannot call lctl, so settings that the servers push are dropped
(aws-fsx-csi-driver#436, #460). cloud-init runs the script before nodeadm starts the kubelet (amazon-eks-ami,
nodeadm-run.service). It has never run on AWS. One message about a failure reaches the console:
`aws ec2 get-console-output`.
"""

from __future__ import annotations

from trainyard.catalog.aws.storage import LNET_PEER_CREDITS, LUSTRE_MODULES

OPTIONS = "\n".join(
    f'  echo "options {module} {option}" >> /etc/modprobe.d/lustre.conf'
    for module, option in LUSTRE_MODULES.items()
)
CLIENT_SECONDS = 90
"""Time that the client's programs have to arrive: a node joins without them. A choice of ours."""
INSTALL = f"timeout {CLIENT_SECONDS} dnf install -y --disablerepo='*' --enablerepo=amazonlinux lustre-client"
"""The AMI with NVIDIA's driver has NVIDIA's repository, too, and no list of its packages (amazon-eks-ami, 2026-07,
install-nvidia-driver.sh and cleanup.sh). dnf asks every repository first, and without a way to the internet that one
does not answer until the time is over. The client is in Amazon Linux's own (FSx for Lustre user guide,
install-lustre-client), which S3 of the region serves."""
CLIENT = """#!/bin/bash
(
  set -euo pipefail
{options}
  {install}
)
if [[ $? -ne 0 ]]; then
  echo "trainyard: no lustre-client on this node, Lustre is mounted without lctl and lfs" | tee /dev/console
fi
exit 0
"""
SCRIPT = """#!/bin/bash
(
  set -euo pipefail
{options}
  port=$(ip -4 -o route show default | awk '{{print $5; exit}}')
  {install}
  modprobe lnet
  modprobe kefalnd ipif_name="$port"
  modprobe ksocklnd
  lnetctl lnet configure
  lnetctl net del --net tcp || true
  lnetctl net add --net tcp --if "$port"
  devices=$(for device in /sys/class/infiniband/*; do
    if [[ $(realpath "$device/device/driver") == */efa ]]; then basename "$device"; fi
  done | awk '(NR - 1) % {step} == 0 && taken++ < {devices}')
  for device in $devices; do
    lnetctl net add --net efa --if "$device" --peer-credits {credits}
  done
  [[ $(lnetctl net show --net efa) == *@efa* ]]
  lnetctl set discovery 1
  lnetctl udsp add --src efa --priority 0
  modprobe lustre
)
if [[ $? -ne 0 ]]; then
  lnetctl net del --net efa
  echo "trainyard: no LNet over EFA, Lustre is mounted over TCP" | tee /dev/console
fi
exit 0
"""
MULTIPART = """MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

{node_config}
--//
Content-Type: text/x-shellscript; charset="us-ascii"

{script}
--//--
"""
"""As Karpenter writes user data itself; its own NodeConfig comes behind these parts."""


def with_lustre_client(node_config: str) -> str:
    """User data with the node config, and the script for a node that mounts Lustre over TCP."""
    script = CLIENT.format(options=OPTIONS, install=INSTALL)
    return MULTIPART.format(node_config=node_config, script=script)


def with_lnet_over_efa(node_config: str, *, efa: int, devices: int) -> str:
    """User data with the node config, and the script for a node that has `efa` devices and gives
    LNet some of them."""
    script = SCRIPT.format(
        options=OPTIONS,
        install=INSTALL,
        step=max(1, efa // devices),
        devices=devices,
        credits=LNET_PEER_CREDITS,
    )
    return MULTIPART.format(node_config=node_config, script=script)
