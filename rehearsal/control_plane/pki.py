"""Certificates, keys and kubeconfigs of one control plane, fresh for each cluster.

Who holds a certificate is in IDENTITIES: a new part of the control plane is a new line there.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rehearsal.paths import BRIDGE

_LIFETIME = datetime.timedelta(days=3650)
_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_CA = "kubernetes"
IDENTITIES = {
    "admin": ("kubernetes-admin", "system:masters"),
    "front-proxy": ("front-proxy", ""),
    "kubelet-client": ("kube-apiserver-kubelet-client", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
}
"""Name of the files → user and group of one of the control plane's own parts; people and nodes have
tokens instead."""


def write(folder: Path, server: str, service_cidr: str) -> None:
    """Fill the folder: ca.crt, apiserver, service account keys, and certificate and kubeconfig of
    each identity."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority, addresses = (
        _new_key(),
        ("127.0.0.1", BRIDGE, str(ipaddress.ip_network(service_cidr)[1])),
    )
    _store(folder / "ca.crt", _certificate(authority, _CA, authority, *_authority_extensions()))
    _issue(
        folder / "apiserver",
        "kube-apiserver",
        authority,
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName(
            [
                *map(x509.DNSName, _NAMES),
                *(x509.IPAddress(ipaddress.ip_address(one)) for one in addresses),
            ]
        ),
    )
    for name, (user, group) in IDENTITIES.items():
        _issue(
            folder / name,
            user,
            authority,
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]),
            group=group,
        )
        _store(folder / f"{name}.kubeconfig", _kubeconfig(folder, server, name))
    service_accounts = _new_key()
    _store(folder / "sa.key", _pem(service_accounts))
    _store(
        folder / "sa.pub",
        service_accounts.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
    )


def _kubeconfig(folder: Path, server: str, name: str) -> bytes:
    """In JSON, which is YAML."""
    cluster = {"server": server, "certificate-authority": str(folder / "ca.crt")}
    user = {
        "client-certificate": str(folder / f"{name}.crt"),
        "client-key": str(folder / f"{name}.key"),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": "plane", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": "plane", "user": name}}],
        }
    ).encode()


def _authority_extensions() -> tuple[x509.ExtensionType, ...]:
    """Without the key usage Python and OpenSSL refuse an authority where they are strict."""
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return x509.BasicConstraints(ca=True, path_length=None), usage


def _issue(
    file: Path,
    user: str,
    authority: EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
    group: str = "",
) -> None:
    """Certificate and key of a user, or of the server."""
    key = _new_key()
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key())
    _store(
        file.with_suffix(".crt"),
        _certificate(key, user, authority, issuer, *extensions, group=group),
    )
    _store(file.with_suffix(".key"), _pem(key))


def _certificate(
    key: EllipticCurvePrivateKey,
    user: str,
    authority: EllipticCurvePrivateKey,
    *extensions: x509.ExtensionType,
    group: str = "",
) -> bytes:
    now, names = (
        datetime.datetime.now(datetime.UTC),
        [x509.NameAttribute(NameOID.COMMON_NAME, user)],
    )
    names += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .public_key(key.public_key())
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _CA)]))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )
    for extension in (*extensions, x509.SubjectKeyIdentifier.from_public_key(key.public_key())):
        critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _new_key() -> EllipticCurvePrivateKey:
    return generate_private_key(SECP256R1())


def _pem(key: EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _store(file: Path, data: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(data)
