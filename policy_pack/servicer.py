"""Judges the engine's configuration of the policies before the first policy is asked.

The engine itself (pulumi 3.259, pkg/resource/analyzer/config.go) refuses an unknown level, and a
setting that its JSON schema refuses. It hands on a policy and a setting that do not exist, and a policy
that is on without what it needs.
"""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf import json_format
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel, policy

from policy_pack.configured import (
    ADVISORY,
    BY_NAME,
    DISABLED,
    LEVEL,
    MANDATORY,
    REMEDIATE,
    chosen,
    config_errors,
)
from policy_pack.resource import Rule
from trainyard.problems import counted, listed

UNSAID = EnforcementLevel.REMEDIATE
"""The level of a policy that must be configured, until somebody says one: the engine hands on the same
for a level that nobody said and for the level that the pack has said. No policy here repairs
anything, so nobody has another use for it."""
LEVELS = {
    proto.ADVISORY: ADVISORY,
    proto.MANDATORY: MANDATORY,
    proto.DISABLED: DISABLED,
    proto.REMEDIATE: REMEDIATE,
}
NUMBERS = {level: number for number, level in LEVELS.items()}


def default_level(rule: Rule) -> EnforcementLevel:
    """The level that the pack says of a policy."""
    if rule.needs_config:
        return UNSAID
    return EnforcementLevel.ADVISORY if rule.advisory else EnforcementLevel.MANDATORY


class StrictServicer(policy._PolicyAnalyzerServicer):
    """The SDK's side of the protocol, with a configuration that is read strictly."""

    def Configure(self, request: Any, context: Any) -> Any:
        given = _given(request)
        if errors := [*config_errors(given)]:
            said = "\n".join(
                [f"{counted(errors)} in the configuration of the policies", *listed(errors)]
            )
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, said)
        for name, rule in BY_NAME.items():
            level, _ = chosen(rule, given)
            request.policyConfig[name].enforcementLevel = NUMBERS[level]
        return super().Configure(request, context)


def _given(request: Any) -> dict[str, Any]:
    """The engine's configuration, in the form of policy_pack/config.json."""
    given: dict[str, Any] = {}
    for name, config in request.policyConfig.items():
        settings = json_format.MessageToDict(config.properties)
        unsaid = (
            name in BY_NAME
            and default_level(BY_NAME[name]) == UNSAID
            and config.enforcementLevel == proto.REMEDIATE
        )
        if not unsaid:
            settings[LEVEL] = LEVELS[config.enforcementLevel]
        if settings:
            given[name] = settings
    return given
