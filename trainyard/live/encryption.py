"""The key of a stack: what `trainyard check --live` asks about it, and what `trainyard plan` says it encrypts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from trainyard import command_line
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.encryption import AUTO_SCALING, USES, key_policy
from trainyard.objects.iam.policies import Document, account_of
from trainyard.objects.iam.read_policies import listed, matches, statements_of
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.problems import InputError, InputWarning
from trainyard.stores.kinds import plan_kind

PATH = "environment.kms_key_arn"
NOT_FOUND = "unknown to this account"
CALLS = {
    "kms:ReEncrypt*": ("kms:ReEncryptFrom", "kms:ReEncryptTo"),
    "kms:GenerateDataKey*": ("kms:GenerateDataKey", "kms:GenerateDataKeyWithoutPlaintext"),
}
"""Calls of nodes that statements name by a pattern; another policy may name each."""


def key_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterable[InputError]]]:
    """The questions about the key; none where the stack file names no key."""
    key = plan.identity.kms_key_arn
    if key is None:
        return {}
    return {
        f"key {key}": lambda: key_errors(plan, key, account.key(key)),
        f"policy of key {key}": lambda: policy_errors(plan, key, account.key_policy(key)),
    }


def default_key_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterable[InputError | InputWarning]]]:
    """The question about the account's default key of EBS, which encrypts disks of nodes where the stack file
    names no key; none where it names one."""
    if plan.identity.kms_key_arn is not None:
        return {}
    return {
        "default key of EBS": lambda: default_key_findings(
            plan, account.default_key(), account.key_policy
        )
    }


def default_key_findings(
    plan: EnvironmentPlan, described: Mapping[str, Any], policy_of: Callable[[str], str]
) -> Iterator[InputError | InputWarning]:
    """A default key of a company that the launchers of nodes may not use. `described`: as KMS describes the key;
    empty where it is AWS's own. EC2 takes the default key for each disk that is `encrypted` and names no key,
    also where encryption by default is off (aws/karpenter-provider-aws#1407)."""
    key = described.get("Arn")
    if key is None or described.get("KeyManager") == "AWS":
        return
    enabled = (state := described.get("KeyState", NOT_FOUND)) == "Enabled"
    try:
        out = _kept_out(plan, key, policy_of(key)) if enabled else []
    except NotAnswered as reason:
        yield InputWarning(
            path=PATH,
            text=(
                f"it is not set, so disks of nodes get the account's default key of EBS, {key}. Its policy was not"
                f" read ({reason}), so nothing says whether Auto Scaling and Karpenter may use the key. Without"
                " that instances end at launch with Client.InternalError"
            ),
        )
        return
    if enabled and not out:
        return
    yield InputError(
        path=PATH,
        must=(
            "be set where Auto Scaling and Karpenter may not use the account's default key of EBS, which disks of"
            " nodes get then: instances end at launch with Client.InternalError"
        ),
        got=f"no key, and the default {key}, "
        + (f"whose policy does not let {' and '.join(out)} in" if enabled else state),
        fix=(
            f"write {key}, whose policy then needs what `trainyard policy {plan.identity.stack} --key` prints; or"
            " have the owner of the key let everybody of the account use it through EC2, as docs/encryption.md shows"
            if enabled
            else "write the ARN of a key that is enabled"
        ),
        write=key if enabled else None,
    )


def _kept_out(plan: EnvironmentPlan, key: str, policy: str) -> list[str]:
    """Launchers of nodes that the policy of the default key does not name. IAM gives neither of them a right to
    that key."""
    statements, account = statements_of(policy), f"arn:aws:iam::{account_of(key)}"
    launchers = {
        "Auto Scaling": f"{account}:{AUTO_SCALING}",
        "Karpenter": f"{account}:role/{plan.karpenter.role_name}",
    }
    calls = [*USES, "kms:CreateGrant"]
    return [
        name
        for name, role in launchers.items()
        if not _granted({"Principal": {"AWS": role}, "Action": calls}, statements)
    ]


def key_errors(
    plan: EnvironmentPlan, key: str, described: Mapping[str, Any]
) -> Iterator[InputError]:
    """A key that nothing can be encrypted with. `described`: as KMS describes it; empty where KMS
    knows it not."""
    state = described.get("KeyState", NOT_FOUND)
    if state != "Enabled":
        enable = f"aws kms enable-key --key-id {key} --region {plan.identity.region}"
        yield InputError(
            path=PATH,
            must="be a key that exists and is enabled",
            got=f"{key}, {state}",
            fix=f"run `{enable}`" if state == "Disabled" else "write the ARN of another key",
        )
        return
    kind = (described.get("KeySpec"), described.get("KeyUsage"))
    if kind != ("SYMMETRIC_DEFAULT", "ENCRYPT_DECRYPT"):
        yield InputError(
            path=PATH,
            must="be a symmetric key that encrypts: EBS, EFS, FSx and EKS take no other",
            got=f"{key}, {kind[0]} for {kind[1]}",
            fix="write the ARN of a key of KeySpec SYMMETRIC_DEFAULT, KeyUsage ENCRYPT_DECRYPT",
        )


def bucket_key_warnings(plan: EnvironmentPlan, caller: str) -> Iterator[InputWarning]:
    """Keys of buckets that another account owns. The stack's roles may use them, and only the policy of
    such a key can let a role of this account do so (KMS developer guide,
    key-policy-modifying-external-accounts)."""
    account = account_of(caller)
    for name, store in plan.stores.items():
        kind = plan_kind(store)
        use = kind.key_use(store)
        if use and account_of(key := use["Resource"]) != account:
            yield InputWarning(
                path=f"environment.storage.{name}.{kind.name}.kms_key_arn",
                text=(
                    f"{key} belongs to account {account_of(key)}: have its owner allow {account}"
                    f" {' and '.join(use['Action'])} in the policy of the key, or pods cannot use the"
                    " bucket"
                ),
            )


def policy_errors(plan: EnvironmentPlan, key: str, policy: str) -> Iterator[InputError]:
    """Statements that the policy of the key lacks. Conditions are not judged. `policy`: as JSON; empty
    where KMS does not know the key."""
    if not policy:
        return
    statements = statements_of(policy)
    lacking = [
        wanted["Sid"]
        for wanted in key_policy(key, plan.identity.stack)["Statement"]
        if (wanted["Sid"] != "WriteLogs" or plan.has_log_groups)
        and not _granted(wanted, statements)
    ]
    if lacking:
        yield InputError(
            path=PATH,
            must=(
                "be a key whose policy lets the account's IAM, Auto Scaling, EventBridge and CloudWatch"
                " Logs use it, or instances end at launch with Client.InternalError"
            ),
            got=f"a policy without what {', '.join(lacking)} allow",
            fix=(
                "have the owner of the key add the statements that"
                f" `trainyard policy {plan.identity.stack} --key` prints"
            ),
        )


def _granted(wanted: Document, statements: Iterable[Document]) -> bool:
    """True where each call of a statement is allowed to its principal by some statement."""
    allowing = [
        statement
        for statement in statements
        if statement["Effect"] == "Allow" and _names(wanted["Principal"], statement["Principal"])
    ]
    return all(
        any(matches(call, each.get("Action")) for each in allowing)
        for action in listed(wanted["Action"])
        for call in CALLS.get(action, (action,))
    )


def _names(wanted: Mapping[str, str], principal: Any) -> bool:
    """True where a principal of a policy is or contains the wanted one."""
    if principal == "*":
        return True
    [(kind, who)] = wanted.items()
    known = {who, "*", *([account_of(who)] if who.endswith(":root") else [])}
    return not known.isdisjoint(listed(principal.get(kind)))


def encryption(plan: EnvironmentPlan | TeamPlan) -> list[str]:
    """Report about what the key encrypts, and what it does not; nothing without a key."""
    key = plan.identity.kms_key_arn
    if key is None or isinstance(plan, TeamPlan):
        return []
    stores = [name for name, store in plan.stores.items() if plan_kind(store).keeps_its_key]
    buckets = [name for name, store in plan.stores.items() if plan_kind(store).own_buckets(store)]
    encrypts = (
        *_secrets(plan),
        "disks of nodes",
        *(f"store {name}" for name in [*stores, *buckets]),
        *(["log groups"] if plan.has_log_groups else []),
        "the interruption queue",
        *(what for part, its in planned_parts(plan) for what in part.encrypts(its)),
    )
    notes = (
        "EKS never changes or removes the key of a cluster; a store keeps the key that it was made with",
        *(["images in ECR have a key of AWS"] if plan.registries else []),
    )
    lines = [f"{key} encrypts {', '.join(encrypts)}", *notes]
    return ["encryption", *(line for each in lines for line in command_line.wrapped(each))]


def _secrets(plan: EnvironmentPlan) -> list[str]:
    """Kubernetes secrets, where the stack makes the cluster. The owner of an existing cluster
    decides how they are encrypted."""
    return ["Kubernetes secrets"] if plan.own_cluster else []
