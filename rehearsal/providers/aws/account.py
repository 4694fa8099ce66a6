"""Calls to AWS: one boto3 client a service and region, retried as the genuine provider does."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, ProfileNotFound

from rehearsal.providers.call import Call
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import words

Role = dict[str, str]
"""A role to assume, in the provider's words."""
THROTTLED = words(
    "Throttling ThrottlingException ThrottledException RequestLimitExceeded RequestThrottled"
    " RequestThrottledException TooManyRequestsException SlowDown BandwidthLimitExceeded"
    " EC2ThrottledException RateExceeded"
)
ATTEMPTS = 25
"""The genuine provider's max_retries."""
SERVER_FAULT_ATTEMPTS = 3
"""The SDKs' own number for answers 500 to 504. Only of questions: a lost answer to anything else
must be seen."""
UNREACHABLE_ATTEMPTS = 9
"""aws-sdk-go-base gives up a refused connection sooner than a throttled call."""
LONGEST_BACKOFF = 20.0

WAITED_OUT = (
    ("DependencyViolation", ""),
    ("DeleteConflict", ""),
    ("ResourceInUseException", "in progress"),
    ("ValidationException", "has targets"),
)
"""Refused now, done later: error code and part of its message that the genuine provider waits
out."""
ABSENT = ("NotFound", "NoSuch", "DoesNotExist", "NonExistent", "InvalidPlacementGroup.Unknown")
"""Parts of error codes that say that an object does not exist."""


class Failed(Refused):
    """AWS answered with an error."""

    def __init__(self, service: str, operation: str, code: str, message: str) -> None:
        super().__init__(f"{service}:{operation}: {code}: {message}")
        self.code, self.message = code, message

    @property
    def absent(self) -> bool:
        """True where the error says that the object does not exist."""
        return any(part in self.code for part in ABSENT)

    @property
    def waited_out(self) -> bool:
        return any(self.code == code and part in self.message for code, part in WAITED_OUT)


def _session_of_profile(region: str | None, profile: str | None) -> boto3.Session:
    try:
        found = boto3.Session(region_name=region, profile_name=profile)
        # Where AWS_DATA_PATH is set, boto3 does not notice yet that there is no such profile.
        if profile and profile not in found.available_profiles:
            raise ProfileNotFound(profile=profile)
        return found
    except ProfileNotFound:
        raise Refused(f"failed to get shared config profile, {profile}") from None


def session(region: str | None, profile: str | None, *roles: Role) -> boto3.Session:
    """Whoever the provider's settings name: a profile, and roles assumed one from the other. Keys of
    a role last an hour here; the genuine provider gets new ones."""
    found = _session_of_profile(region, profile)
    for role in roles:
        asked = {
            name: role[key]
            for key, name in (("roleArn", "RoleArn"), ("externalId", "ExternalId"))
            if key in role
        }
        try:
            keys = found.client("sts").assume_role(
                **asked, RoleSessionName=role.get("sessionName", "pulumi")
            )["Credentials"]
        except (ClientError, BotoCoreError) as fault:
            raise Refused(f"IAM Role ({role['roleArn']}) cannot be assumed: {fault}") from None
        found = boto3.Session(
            region_name=found.region_name,
            aws_access_key_id=keys["AccessKeyId"],
            aws_secret_access_key=keys["SecretAccessKey"],
            aws_session_token=keys["SessionToken"],
        )
    return found


class Clients:
    """boto3 clients by service and region, made once: making one costs about 0.1 s and is not
    thread-safe."""

    def __init__(self, region: str | None, profile: str | None = None, *roles: Role) -> None:
        self.session = session(region, profile, *roles)
        self.clients: dict[tuple[str, str], Any] = {}
        self.lock = threading.Lock()

    def get(self, service: str, region: str) -> Any:
        with self.lock:
            if (service, region) not in self.clients:
                # A lost answer must be seen, so botocore repeats nothing by itself: see
                # Account.call.
                config = Config(retries={"total_max_attempts": 1}, max_pool_connections=64)
                self.clients[service, region] = self.session.client(
                    service, region_name=region, config=config
                )
            return self.clients[service, region]


@dataclass(frozen=True)
class Account:
    """AWS in one region, for one request of the engine."""

    clients: Clients
    region: str
    request: Call

    def call(self, service: str, operation: str, **arguments: Any) -> dict[str, Any]:
        """One operation, named as in boto3; arguments that are None are left out."""
        function = getattr(self.clients.get(service, self.region), operation)
        given = {key: value for key, value in arguments.items() if value is not None}
        for attempt in range(ATTEMPTS):
            try:
                return _done(service, operation, function(**given))
            except (ClientError, BotoCoreError) as fault:
                if attempt + 1 >= _attempts(fault, operation):
                    raise _failed(service, operation, fault) from None
            self.request.pause(min(LONGEST_BACKOFF, 0.1 * 2**attempt) * random.uniform(0.5, 1))
        raise AssertionError("unreachable")

    def seen(self, service: str, operation: str, **arguments: Any) -> dict[str, Any] | None:
        """The answer of a call, or None if it says that there is no such object."""
        try:
            return self.call(service, operation, **arguments)
        except Failed as fault:
            if fault.absent:
                return None
            raise

    def patiently(self, seconds: float, remove: Callable[[], Any]) -> None:
        """Delete something as soon as AWS lets us: what stands in its way may be on its way out."""
        end = time.monotonic() + (self.request.timeout or seconds)
        while True:
            try:
                remove()
                return
            except Failed as fault:
                if fault.absent:
                    return
                if not fault.waited_out or time.monotonic() > end:
                    raise
                self.request.pause(1, why=str(fault))


def _done(service: str, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, unless it is the error of the one thing that a call for several was made for."""
    for failure in answer.get("FailedEntries") or []:
        raise Failed(
            service, operation, failure.get("ErrorCode", ""), failure.get("ErrorMessage", "")
        )
    return answer


def _attempts(fault: Exception, operation: str) -> int:
    """Number of times that a call that failed so is made in all. A broken connection is final: AWS
    may have done the work."""
    if isinstance(fault, EndpointConnectionError):
        return UNREACHABLE_ATTEMPTS
    if not isinstance(fault, ClientError):
        return 1
    if fault.response["Error"]["Code"] in THROTTLED:
        return ATTEMPTS
    question = operation.startswith(("describe_", "get_", "list_"))
    return (
        SERVER_FAULT_ATTEMPTS
        if question and fault.response["ResponseMetadata"]["HTTPStatusCode"] >= 500
        else 1
    )


def _failed(service: str, operation: str, fault: Exception) -> Refused:
    if isinstance(fault, ClientError):
        return Failed(
            service, operation, fault.response["Error"]["Code"], fault.response["Error"]["Message"]
        )
    return Refused(f"{service}:{operation}: {fault}")
