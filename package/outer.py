"""The component as the program sees it, to which everything belongs that the program of a stack file makes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pulumi
from pulumi.runtime import settings

from package.schema import NAME
from package.shadows import Shadows
from trainyard.problems import At, InputError

HOME = Path(__file__).resolve().parents[1]
LINK = Path(".trainyard")
"""Link in the folder of the program to the folder of the package. The state names charts by a path from
there. The folder of a plugin would be another path on each machine, and each would update the releases."""
OWN_CHARTS = "./components/charts/"
"""Beginning of the paths of our own charts, as plans have them."""
OWN_PROVIDERS = ("aws", "eks", "kubernetes")
"""Packages whose providers a component makes itself."""


class _Outer(pulumi.ComponentResource):
    """Nothing of its own: its children are everything."""


def outer(
    kind: str,
    name: str,
    options: pulumi.ResourceOptions,
    *,
    needs: Collection[pulumi.Resource],
    shadows: Shadows,
) -> pulumi.ComponentResource:
    """Make the component. Whatever is made from here on without a parent belongs to it, as it belongs to
    the stack in the program of a stack file. `needs`: resources that arguments are outputs of, which must
    outlive everything."""
    _link()

    def changed(
        made: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult:
        chart = made.props.get("chart")
        props = dict(made.props)
        if isinstance(chart, str) and chart.startswith(OWN_CHARTS):
            props["chart"] = f"./{LINK}/{chart.removeprefix('./')}"
        opts = made.opts
        if needs and not made.type_.startswith(f"{NAME}:"):
            more = pulumi.ResourceOptions(depends_on=[*needs])
            opts = pulumi.ResourceOptions.merge(opts, more)
        return pulumi.ResourceTransformationResult(shadows.over(props), opts)

    options.transformations = [*(options.transformations or ()), changed]
    made = _Outer(kind, name, None, options)
    settings.set_root_resource(made)
    return made


def provider_errors(options: pulumi.ResourceOptions) -> Iterator[InputError]:
    """Errors of providers that would be accepted and ignored."""
    given = options.providers or {}
    named = given if isinstance(given, Mapping) else {each.package: each for each in given}
    for package in sorted({*named} & {*OWN_PROVIDERS}):
        yield At("providers").must(
            "not be set: the component makes its own providers, from the aws: settings of the stack",
            got=package,
            fix="leave the option out, and set aws:region, aws:profile or aws:assumeRoles",
        )


def _link() -> None:
    if not LINK.exists() or LINK.is_symlink() and LINK.resolve() != HOME:
        LINK.unlink(missing_ok=True)
        LINK.symlink_to(HOME)
