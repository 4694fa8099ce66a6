"""`pulumi preview --policy-pack policy_pack`: gives the rules to the engine.

An unknown value is a value that AWS chooses. A rule that reads one is asked again when `pulumi up` knows it.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The engine starts this folder, and not the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy import policy as module

from policy_pack.policies import RULES
from policy_pack.resource import Resource, Rule, default_tags
from policy_pack.servicer import StrictServicer, default_level


def policy(rule: Rule) -> Policy:
    """A rule, as the engine takes it."""
    level = default_level(rule)
    schema = PolicyConfigSchema({key: dict(value) for key, value in rule.config.items()})
    common: dict[str, Any] = {
        "name": rule.name,
        "description": rule.description,
        "config_schema": schema if rule.config else None,
        "remediation_steps": rule.fix,
    }
    if rule.stack_check is not None:
        return StackValidationPolicy(enforcement_level=level, validate=_of_stack(rule), **common)
    return ResourceValidationPolicy(enforcement_level=level, validate=_of_resource(rule), **common)


def _of_resource(rule: Rule) -> Any:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        config = _config(rule, args)
        assert rule.check is not None
        for must in rule.check(_resource(args, args.resource_type), config):
            report(_sentence(args.name, must, rule), None)

    return validate


def _of_stack(rule: Rule) -> Any:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        config = _config(rule, args)
        assert rule.stack_check is not None
        resources = [_resource(one, one.resource_type) for one in args.resources]
        names = {one.urn: one.name for one in resources}
        for urn, must in rule.stack_check(resources, config):
            report(_sentence(names[urn], must, rule), urn)

    return validate


def _config(rule: Rule, args: Any) -> Mapping[str, Any]:
    """Settings that the security team has configured. Without them the rule does not apply."""
    config = args.get_config()
    if missing := [key for key in rule.needs_config if key not in config]:
        args.not_applicable(f"{', '.join(missing)} is not configured")
    return config


def _resource(of: Any, kind: str) -> Resource:
    needs = getattr(of, "dependencies", ())
    return Resource(
        type=kind,
        name=of.name,
        urn=of.urn,
        props=of.props,
        protect=of.opts.protect,
        default_tags=default_tags(of.provider.props) if of.provider else {},
        needs=frozenset(one.urn for one in needs),
    )


def _sentence(name: str, must: str, rule: Rule) -> str:
    return f"{name}: {must}. Fix: {rule.fix}."


# PolicyPack takes no other way to read its configuration.
module._PolicyAnalyzerServicer = StrictServicer
PolicyPack(
    name="trainyard",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[policy(rule) for rule in RULES],
)
