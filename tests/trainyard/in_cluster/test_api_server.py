"""trainyard/in_cluster/shared/api_server.py: whom it trusts, and how much of an answer it keeps."""

from __future__ import annotations

import io
import ssl
from collections.abc import Iterator
from contextlib import nullcontext
from types import ModuleType

import pytest

from tests.support.programs import imported


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with imported("repair"):
        import api_server  # pyright: ignore[reportMissingImports]

        yield api_server


def test_an_authority_without_key_identifiers_is_trusted_and_no_other_one(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of EKS clusters that began with Kubernetes 1.16; Python 3.13 refuses it."""
    strict = ssl.create_default_context()
    strict.verify_flags |= ssl.VERIFY_X509_STRICT
    monkeypatch.setattr(module.ssl, "create_default_context", lambda **_: strict)
    trust = module.Api()._trust
    assert not trust.verify_flags & ssl.VERIFY_X509_STRICT
    assert trust.verify_mode == ssl.CERT_REQUIRED and trust.check_hostname


def test_of_a_long_log_the_last_mebibyte_is_kept(
    module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bar of progress that is drawn for hours, with the error behind it."""
    log = io.BytesIO(b"\r 1%|" * (10 << 18) + b"\nValueError: no rows\n")
    monkeypatch.setattr(module.Api, "__init__", lambda _: None)
    monkeypatch.setattr(module.Api, "_answer", lambda *_: nullcontext(log))
    text = module.Api().text("/log", otherwise="none")
    assert len(text) == 1 << 20 and text.endswith("\nValueError: no rows\n")


def test_an_answer_is_read_in_parts_and_to_its_end(module: ModuleType) -> None:
    log = bytes(range(256)) * 20_000
    assert module._end(io.BytesIO(log)) == log[-(1 << 20) :]
    assert module._end(io.BytesIO(b"short")) == b"short"
