"""Callers of AWS and of the cluster: identities, sessions and endpoints. trainyard/derive/access.py
derives them from settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trainyard.plans.documents import account_of


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A role that enters the cluster, and that must be there before its access entry."""

    arn: str
    account: str
    name: str
    """Its name without its path, which IAM asks for."""
    refusal: str
    """Error where the role is missing, with the command that makes it."""


@dataclass(frozen=True, kw_only=True)
class NamedRole:
    """A role that the environment itself lets into the cluster, under a name of the stack file."""

    setting: Literal["admins", "viewers"]
    name: str
    arn: str

    @property
    def path(self) -> str:
        """Setting that names it."""
        return f"environment.cluster.{self.setting}.{self.name}"


@dataclass(frozen=True, kw_only=True)
class AssumedRole:
    """A role to assume."""

    arn: str
    session_name: str | None = None
    external_id: str | None = None
    duration: str | None = None
    """Duration of a session, such as 1h. None: the provider's own hour."""


@dataclass(frozen=True, kw_only=True)
class AccessPlan:
    """Identities that call AWS and the cluster, and the accounts in which they may."""

    region: str
    profile: str | None = None
    """Profile in ~/.aws/config. None: the environment variables of the AWS CLI decide."""
    roles: tuple[AssumedRole, ...] = ()
    """Assumed one from the other."""
    allowed_account_ids: tuple[str, ...] = ()
    """Empty: every account."""
    forbidden_account_ids: tuple[str, ...] = ()
    default_tags: tuple[tuple[str, str], ...] = ()
    """On everything the AWS provider makes, unless the object has that key itself."""
    tunnel_port: int | None = None
    """Port of this machine that leads to the cluster's endpoint; None: no tunnel is used."""
    proxy_url: str | None = None
    """Proxy through which the cluster's endpoint is reached; None: directly."""

    @property
    def role_arn(self) -> str | None:
        """The role that makes the cluster, and so may enter it; None: the caller itself."""
        return self.roles[-1].arn if self.roles else None

    @property
    def accounts(self) -> set[str]:
        """The accounts that the stack can be in, as far as the stack file tells; empty: any."""
        return {account_of(self.role_arn)} if self.role_arn else {*self.allowed_account_ids}

    def refuses(self, account: str) -> str:
        """The setting that refuses an account; empty where none does."""
        if account in self.forbidden_account_ids:
            return "aws:forbiddenAccountIds"
        allowed = not self.allowed_account_ids or account in self.allowed_account_ids
        return "" if allowed else "aws:allowedAccountIds"
