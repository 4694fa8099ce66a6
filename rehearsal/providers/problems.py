"""Errors of a plugin of the rehearsal that cannot do what the engine asks."""

from __future__ import annotations

from rehearsal.providers.wire import Properties


class Refused(Exception):
    """The operation cannot be done; the message is all the user sees."""


class Cancelled(Refused):
    """The user interrupted the engine while the plugin was waiting."""


class Invalid(Refused):
    """Check found an input that cannot be right."""

    def __init__(self, property_: str, reason: str) -> None:
        super().__init__(f"{property_}: {reason}")
        self.property, self.reason = property_, reason


class NotReady(Refused):
    """The object exists but did not become ready: the engine keeps it in its state, with the
    reasons."""

    def __init__(self, id_: str, state: Properties, inputs: Properties, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.id, self.state, self.inputs, self.reasons = id_, state, inputs, reasons
