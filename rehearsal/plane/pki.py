"""Certificates, keys and kubeconfigs of one control plane, fresh for each cluster.

Who holds a certificate is in IDENTITIES: a new part of the control plane is a new line there.
"""

from __future__ import annotations

import datetime
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from rehearsal.paths import BRIDGE

_LIFETIME = datetime.timedelta(days=3650)
_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
          "kubernetes.default.svc.cluster.local")


@dataclass(frozen=True, kw_only=True)
class Identity:
    """A certificate of one of the control plane's own parts; people and nodes have tokens instead."""

    name: str
    """Of its files."""
    user: str
    group: str | None = None


IDENTITIES = (
    Identity(name="admin", user="kubernetes-admin", group="system:masters"),
    Identity(name="kubelet-client", user="kube-apiserver-kubelet-client", group="system:masters"),
    Identity(name="kube-controller-manager", user="system:kube-controller-manager"),
    Identity(name="kube-scheduler", user="system:kube-scheduler"),
)


def write(folder: Path, server: str, service_cidr: str) -> None:
    """Fill the folder: ca.crt, apiserver, service account keys, and certificate and kubeconfig of each identity."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    authority = _Authority(key=_new_key(), name=_subject("kubernetes"))
    _store(folder / "ca.crt", authority.own())
    authority.issue(folder, "apiserver", _subject("kube-apiserver"), _serving(service_cidr))
    for identity in IDENTITIES:
        authority.issue(folder, identity.name, _subject(identity.user, identity.group))
        _store(folder / f"{identity.name}.kubeconfig", _kubeconfig(folder, server, identity.name))
    service_accounts = _new_key()
    _store(folder / "sa.key", _pem(service_accounts))
    _store(folder / "sa.pub", service_accounts.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))


def _kubeconfig(folder: Path, server: str, name: str) -> bytes:
    """In JSON, which is YAML."""
    cluster = {"server": server, "certificate-authority": str(folder / "ca.crt")}
    user = {"client-certificate": str(folder / f"{name}.crt"), "client-key": str(folder / f"{name}.key")}
    return json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": name,
                       "clusters": [{"name": "plane", "cluster": cluster}], "users": [{"name": name, "user": user}],
                       "contexts": [{"name": name, "context": {"cluster": "plane", "user": name}}]}).encode()


def _serving(service_cidr: str) -> x509.SubjectAlternativeName:
    addresses = ("127.0.0.1", BRIDGE, str(ipaddress.ip_network(service_cidr)[1]))
    return x509.SubjectAlternativeName([*map(x509.DNSName, _NAMES),
                                        *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses)])


@dataclass(frozen=True, kw_only=True)
class _Authority:
    """The cluster's certificate authority."""

    key: ec.EllipticCurvePrivateKey
    name: x509.Name

    def own(self) -> bytes:
        """Its certificate; without the key usage Python and OpenSSL refuse it where they are strict."""
        usage = x509.KeyUsage(digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
                              key_encipherment=False, data_encipherment=False, key_agreement=False,
                              encipher_only=False, decipher_only=False)
        return self._sign(self.name, self.key, (x509.BasicConstraints(ca=True, path_length=None), usage))

    def issue(self, folder: Path, name: str, subject: x509.Name,
              serving: x509.SubjectAlternativeName | None = None) -> None:
        """Certificate and key of a server where it serves under some names, else of a client."""
        key = _new_key()
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if serving else ExtendedKeyUsageOID.CLIENT_AUTH
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        extensions = (x509.ExtendedKeyUsage([purpose]), issuer, *([serving] if serving else []))
        _store(folder / f"{name}.crt", self._sign(subject, key, extensions))
        _store(folder / f"{name}.key", _pem(key))

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey,
              extensions: tuple[x509.ExtensionType, ...]) -> bytes:
        now = datetime.datetime.now(datetime.UTC)
        builder = (x509.CertificateBuilder().subject_name(subject).issuer_name(self.name).public_key(key.public_key())
                   .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
                   .not_valid_after(now + _LIFETIME)
                   .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False))
        for extension in extensions:
            critical = isinstance(extension, x509.BasicConstraints | x509.KeyUsage)
            builder = builder.add_extension(extension, critical=critical)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _subject(user: str, group: str | None = None) -> x509.Name:
    names = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    return x509.Name(names + ([x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []))


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                             serialization.NoEncryption())


def _store(file: Path, data: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(data)
