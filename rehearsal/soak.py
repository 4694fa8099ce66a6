"""`make soak`: what is killed comes back, and what is left out is named.

First the leave-outs, one at a time in one world: the job must not complete, and `make status` must name the cause.
Then kills at random moments of `up` and `down`: the next `up` must end Complete with nothing made twice, the next
`down` with an empty account. The seed is printed; --seed repeats a soak.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.trials import VICTIMS, Trial, until

JOB, PATIENCE, GPU_NODE = "t5-large", 75, "a GPU node"
"""The dev stack's job, and how long a crippled copy of it is watched; a sound one is done in 30 s."""


@dataclass(frozen=True, kw_only=True)
class LeaveOut:
    """Something taken away, how it comes back, and the words that name it."""

    what: str
    away: str
    back: str
    named: tuple[str, ...]
    """Any of these in `make status`."""


LEAVE_OUTS: tuple[LeaveOut, ...] = (
    LeaveOut(what="Karpenter's chart", away="helm uninstall karpenter -n kube-system --keep-history --wait",
             back="helm rollback karpenter 1 -n kube-system --wait", named=("nothing launches nodes",)),
    LeaveOut(what="a rule of the Trainer's Role",
             away="kubectl get clusterrole $R -o json > $S/role.json; jq_free() { python3 -c 'import json,sys;"
                  "o=json.load(open(sys.argv[1]));o[\"rules\"]=[r for r in o[\"rules\"] if \"jobsets\" not in"
                  " r.get(\"resources\",[])];o[\"metadata\"].pop(\"resourceVersion\");json.dump(o,sys.stdout)' $1; };"
                  " jq_free $S/role.json | kubectl replace -f -",
             back="python3 -c 'import json,sys;o=json.load(open(sys.argv[1]));o[\"metadata\"].pop(\"resourceVersion\");"
                  "json.dump(o,sys.stdout)' $S/role.json | kubectl replace -f -", named=("its Role is too narrow",)),
    LeaveOut(what="the nodes' access entry",
             away="aws eks delete-access-entry --cluster-name $C --principal-arn $N",
             back="aws eks create-access-entry --cluster-name $C --principal-arn $N --type EC2_LINUX",
             named=("needs an access entry",)),
    LeaveOut(what="the subnet of the NodeClass",
             away="kubectl get ec2nodeclass g6e -o jsonpath='{.spec.subnetSelectorTerms[0].id}' > $S/subnet;"
                  " kubectl patch ec2nodeclass g6e --type merge -p"
                  " '{\"spec\":{\"subnetSelectorTerms\":[{\"id\":\"subnet-00000000000000000\"}]}}'",
             back="kubectl patch ec2nodeclass g6e --type merge -p"
                  " '{\"spec\":{\"subnetSelectorTerms\":[{\"id\":\"'$(cat $S/subnet)'\"}]}}'", named=("SubnetsReady",)),
    LeaveOut(what="the NVIDIA device plugin",
             away="helm uninstall nvidia-device-plugin -n kube-system --keep-history --wait",
             back="helm rollback nvidia-device-plugin 1 -n kube-system --wait",
             named=("device plugin is missing", "not initialized")),
    LeaveOut(what="the rendezvous endpoint", away="true", back="true", named=("no --rdzv_endpoint",)),
)


def leave_outs(trial: Trial, work: Path) -> Iterator[str]:
    """One line for each leave-out that did not behave; nothing where all did."""
    names = _names(trial, work)
    for number, case in enumerate(LEAVE_OUTS):
        trial.shell("kubectl delete nodeclaims --all --wait", check=False)
        trial.shell(f"{names} {case.away}")
        edit = _without_endpoint if case.away == "true" else (lambda script: script)
        trial.apply(trial.copy_of(JOB, f"crippled-{number}", script=edit))
        ended = until(lambda name=f"crippled-{number}": trial.condition(name) == "Complete", seconds=PATIENCE, every=5)
        said = trial.shell(f"{sys.executable} -m operations.status", check=False)
        named = any(words in said for words in case.named)
        print(f"  without {case.what:30} {'completed!' if ended else 'does not complete'}"
              f"  {'named' if named else 'NOT NAMED'}", flush=True)
        trial.shell(f"{names} {case.back}")
        trial.shell(f"kubectl -n training delete trainjob crippled-{number} --wait", check=False)
        if ended or not named:
            yield f"without {case.what}: {'completed' if ended else said}"


def _names(trial: Trial, work: Path) -> str:
    """Shell variables: cluster, node role, the Trainer's ClusterRole, a folder."""
    cluster = trial.shell("aws eks list-clusters --query 'clusters[0]' --output text").strip()
    roles = "Roles[?contains(RoleName,'gpu-nodes')].Arn"
    role = trial.shell(f'aws iam list-roles --query "{roles}" --output text').strip()
    rule = trial.shell("kubectl get clusterrole -o name | grep trainer-controller-manager").split("/")[-1].strip()
    return f"C={cluster} N={role} R={rule} S={work};"


def _without_endpoint(script: str) -> str:
    return "\n".join(line for line in script.splitlines() if "--rdzv_endpoint" not in line)


def kill_round(trial: Trial, chance: random.Random, word: str) -> str | None:
    """Kill one of VICTIMS somewhere in `up` or `down`, or as soon after as it lives; then say the word again.

    Returns what is wrong, or None.
    """
    victim, moment = chance.choice([*sorted(VICTIMS), GPU_NODE]), chance.uniform(2, 60 if word == "up" else 30)
    find = trial.gpu_instances if victim == GPU_NODE else lambda: trial.processes(VICTIMS[victim])
    command = trial.start(word)
    time.sleep(moment)
    until(lambda: find() or command.poll() is not None, seconds=60, every=0.2)
    still, killed = command.poll() is None, _kill(trial, victim)
    first = command.wait()
    again = trial.do(word) if first or word == "up" else 0
    print(f"  {word:4} {victim:27} at {moment:4.1f} s  killed {killed}{'' if still else ' (after the end)'}"
          f"  ended {first}, then {again}", flush=True)
    if again:
        return f"{word} after killing {victim} at {moment:.1f} s ended with {again}"
    return _twice(trial) if word == "up" else None


def _kill(trial: Trial, victim: str) -> int:
    """SIGKILL to a program, or the end of one GPU instance as if its hardware had died; how many there were."""
    if victim != GPU_NODE:
        return trial.kill(VICTIMS[victim])
    found = trial.gpu_instances()[:1]
    return len([i for i in found if trial.do("fault", "vanish", "--instance", i) == 0])


def _twice(trial: Trial) -> str | None:
    """Objects of the stack that exist more than once under one logical name."""
    things = json.loads(trial.shell("curl -s $AWS_ENDPOINT_URL/_world/inventory"))
    logical = [(t["type"], t["tags"]["trainyard:name"]) for t in things
               if "trainyard:name" in t["tags"] and "karpenter.sh/nodepool" not in t["tags"]
               and t["type"] not in ("volume", "instance", "network-interface", "launch-template")]
    doubled = sorted({entry for entry in logical if logical.count(entry) > 1})
    return f"made twice: {doubled}" if doubled else None


@contextmanager
def a_world() -> Iterator[tuple[Trial, Path]]:
    """A rehearsal in a folder of its own, ended whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="trainyard-", dir="/tmp"))
    trial = Trial(state=folder / "s", log=folder / "log")
    try:
        yield trial, folder
    finally:
        trial.do("down", "--force")
        print(f"  everything that was said: {trial.log}")
        shutil.rmtree(trial.state, ignore_errors=True)


def main(arguments: list[str]) -> int:
    """Soak; 0 when everything held."""
    parser = argparse.ArgumentParser(prog="python -m rehearsal.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--no-leave-outs", action="store_true")
    options = parser.parse_args(arguments)
    chance, wrong = random.Random(options.seed), []
    print(f"seed {options.seed}, {options.kills} kills")
    with a_world() as (trial, work):
        if not options.no_leave_outs:
            wrong += [] if trial.do("up") == 0 else ["the first up failed"]
            wrong += leave_outs(trial, work)
            wrong += [] if trial.do("down") == 0 else ["down after the leave-outs failed"]
        for number in range(options.kills):
            problem = kill_round(trial, chance, ("up", "down")[number % 2])
            wrong += [problem] if problem else []
        wrong += [] if trial.do("down") == 0 else ["the last down failed"]
    print("\n".join(["everything held"] if not wrong else [f"WRONG {line}" for line in wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
