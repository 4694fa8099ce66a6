"""User data of nodes that mount Lustre over EFA: what cloud-init and nodeadm find in it, and what
the script does."""

from __future__ import annotations

import email
import subprocess
from pathlib import Path

import pytest
import yaml

from components.nodes.gpu_pool import FAST_PULL
from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.catalog.aws.storage import LNET_EFA_DEVICES
from trainyard.derive.pools import efa_interfaces
from trainyard.objects.jobs.lnet import with_lnet_over_efa, with_lustre_client


def parts(instance_type: str) -> dict[str, str]:
    """`instance_type`: empty for a node that mounts Lustre over TCP."""
    text = with_lustre_client(FAST_PULL)
    if instance_type:
        kind = GPU_TYPES[instance_type]
        text = with_lnet_over_efa(FAST_PULL, efa=kind.efa, devices=LNET_EFA_DEVICES[instance_type])
    found = {
        part.get_content_type(): str(part.get_payload())
        for part in email.message_from_string(text).walk()
        if not part.is_multipart()
    }
    assert len(text.encode()) < 10_000, "user data has 16 KB, and Karpenter adds its own"
    return found


@pytest.mark.parametrize("instance_type", ["", *LNET_EFA_DEVICES])
def test_the_node_config_is_as_it_was_and_the_script_is_one(
    instance_type: str, tmp_path: Path
) -> None:
    found = parts(instance_type)
    assert yaml.safe_load(found["application/node.eks.aws"]) == yaml.safe_load(FAST_PULL)
    script = tmp_path / "script"
    script.write_text(found["text/x-shellscript"])
    assert script.read_text().startswith("#!/bin/bash\n")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


INSTALL = "dnf install -y --disablerepo=* --enablerepo=amazonlinux lustre-client"
PROGRAMS = ("ip", "dnf", "modprobe", "lnetctl", "realpath", "basename", "tee")


def ran(instance_type: str, folder: Path, fails: str = "") -> list[str]:
    """The commands that the script gives, on a machine of the type whose every program only notes
    them."""
    bin_, devices = folder / "bin", folder / "infiniband"
    bin_.mkdir()
    devices.mkdir()
    interfaces = efa_interfaces(GPU_TYPES[instance_type]) if instance_type else ()
    count = sum("efa" in each.kind for each in interfaces)
    for number in range(count):
        (devices / f"rdmap{number:02}s0").touch()
    answers = {
        "ip": "echo default via 10.0.0.1 dev ens32 proto",
        "realpath": "echo /sys/bus/pci/drivers/efa",
        "basename": 'echo "${1##*/}"',
        "tee": "cat",
        "lnetctl": "echo 10.0.0.1@efa",
    }
    for name in PROGRAMS:
        note = (
            "" if name in ("realpath", "basename", "ip") else f'echo "{name} $*" >> {folder}/log\n'
        )
        end = f'[[ "{name} $*" != "{fails}"* ]]' if fails else "true"
        (bin_ / name).write_text(f"#!/bin/bash\n{note}{answers.get(name, 'true')}\n{end}\n")
        (bin_ / name).chmod(0o755)
    script = parts(instance_type)["text/x-shellscript"]
    script = script.replace("/sys/class/infiniband", str(devices))
    script = script.replace("/etc/modprobe.d", str(folder))
    done = subprocess.run(
        ["bash", "-c", script],
        env={"PATH": f"{bin_}:/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, "the kubelet starts whatever happens here"
    return (folder / "log").read_text().splitlines()


@pytest.mark.parametrize(
    ("instance_type", "first", "last"),
    [
        ("p5.48xlarge", ["00", "04", "08"], "28"),
        ("p5en.48xlarge", ["00", "02", "04"], "14"),
        ("p6-b200.48xlarge", ["00", "01", "02"], "07"),
        ("p6-b300.48xlarge", ["00", "01", "02"], "15"),
    ],
)
def test_lustre_takes_as_many_devices_as_aws_gives_it_evenly_spread(
    instance_type: str, first: list[str], last: str, tmp_path: Path
) -> None:
    said = ran(instance_type, tmp_path)
    taken = [
        line.split("rdmap")[1][:2] for line in said if line.startswith("lnetctl net add --net efa")
    ]
    assert (taken[:3], taken[-1], len(taken)) == (first, last, LNET_EFA_DEVICES[instance_type])


def test_each_device_has_the_messages_under_way_that_aws_asks_for(tmp_path: Path) -> None:
    """With the default of 8 a client reaches a part of the throughput of its file system (FSX
    configure-efa-clients)."""
    added = [line for line in ran("p5.48xlarge", tmp_path) if "net add --net efa" in line]
    assert added and all(line.endswith("--peer-credits 32") for line in added)


def test_lustre_comes_last_and_prefers_efa_to_the_port_that_tcp_has(tmp_path: Path) -> None:
    said = ran("p5.48xlarge", tmp_path)
    assert said[0] == INSTALL and said[-1] == "modprobe lustre"
    assert (
        "modprobe kefalnd ipif_name=ens32" in said
        and "lnetctl net add --net tcp --if ens32" in said
    )
    assert "lnetctl udsp add --src efa --priority 0" in said


@pytest.mark.parametrize(
    "fails", ["dnf", "modprobe kefalnd", "lnetctl net add --net efa", "modprobe lustre"]
)
def test_a_node_on_which_it_fails_has_no_efa_in_lustres_network_and_says_so(
    fails: str, tmp_path: Path
) -> None:
    said = ran("p5.48xlarge", tmp_path, fails)
    assert said[-2:] == ["lnetctl net del --net efa", "tee /dev/console"]


def test_a_node_over_tcp_gets_the_programs_of_the_client_and_loads_nothing(tmp_path: Path) -> None:
    assert ran("", tmp_path) == [INSTALL]


@pytest.mark.parametrize("instance_type", ["", "p5.48xlarge"])
def test_the_options_of_the_modules_stand_before_a_module_is_loaded(
    instance_type: str, tmp_path: Path
) -> None:
    ran(instance_type, tmp_path, fails="dnf")
    assert (tmp_path / "lustre.conf").read_text().splitlines() == [
        "options ptlrpc ptlrpcd_per_cpt_max=64",
        "options ksocklnd credits=2560",
    ]


@pytest.mark.parametrize("instance_type", ["", "p5.48xlarge"])
def test_no_repository_holds_a_node_up(instance_type: str) -> None:
    """That of NVIDIA does not answer without a way to the internet."""
    assert "  timeout 90 dnf install" in parts(instance_type)["text/x-shellscript"]


def test_a_node_whose_client_does_not_arrive_says_so_and_joins(tmp_path: Path) -> None:
    assert ran("", tmp_path, fails="dnf")[-1] == "tee /dev/console"
