"""Secrets of AWS Secrets Manager as pods read them: files of the Secrets Store CSI driver, which AWS's
provider fetches with the pod's own identity. No value is in the cluster's store, in a pod's spec or
in the state of Pulumi.

Sources: aws/secrets-store-csi-driver-provider-aws@a74182c (3.1.1, 2026-06-04), README.md and provider/;
kubernetes-sigs/secrets-store-csi-driver@0aad886 (1.6.0).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated

import pydantic

from trainyard.objects.iam.encryption import KEY_ARN
from trainyard.objects.iam.policies import Document
from trainyard.plans.identity import digest
from trainyard.plans.jobs import Spec

ADD_ON = "aws-secrets-store-csi-driver-provider"
"""The EKS add-on with driver and provider."""
DRIVER = "secrets-store.csi.k8s.io"
GROUP = "secrets-store.csi.x-k8s.io"
KIND = "SecretProviderClass"
ROTATION_MINUTES = 60
"""Minutes between two comparisons of a running pod's files with Secrets Manager. The provider's
README recommends an hour: each comparison is a paid call for each secret of each pod."""
CONFIGURATION = json.dumps(
    {
        "secrets-store-csi-driver": {
            "enableSecretRotation": True,
            "rotationPollInterval": f"{ROTATION_MINUTES * 60}s",
        },
        # The provider must run on GPU nodes, which have a taint. The driver tolerates all anyway.
        "tolerations": [{"operator": "Exists"}],
    },
    sort_keys=True,
)
"""Configuration of the add-on: values of the provider's chart."""
FOLDER = "/run/trainyard/secrets"
"""Folder of the files of a job's secrets."""
RUNS_THE_REST = 'exec "$@"'
"""Last line of the shell's text that stands before the command of a job with secrets."""
VOLUME = "secrets-manager"
READS = ("secretsmanager:DescribeSecret", "secretsmanager:GetSecretValue")
"""Calls of the provider (its README): the first one to see whether a secret has changed."""
RANDOM = "-??????"
"""Secrets Manager ends the ARN of a secret with a dash and six random characters."""
SECRET_ARN = re.compile(
    r"arn:aws[a-z-]*:secretsmanager:(?P<region>[-a-z0-9]+):(?P<account>\d{12}):secret:"
    r"(?P<name>.+)-[A-Za-z0-9]{6}"
)
_ARN = r"arn:aws[a-z-]*:secretsmanager:[-a-z0-9]+:\d{12}:secret:[-/_+=.@A-Za-z0-9]+-[A-Za-z0-9]{6}"
NAMES = rf"^({_ARN}|[-/_+=.@A-Za-z0-9]{{0,511}}[-_+=.@A-Za-z0-9])$"
"""Pattern of a secret's name or ARN (CreateSecret of Secrets Manager: letters, digits and
/_+=.@-)."""
PREFIXES = rf"^({_ARN}|[-/_+=.@A-Za-z0-9]{{1,512}})$"
"""Pattern of a name or an ARN of a secret, or of the beginning of names, up to a slash."""

KeyArn = Annotated[str, pydantic.Field(pattern=KEY_ARN)]
SecretName = Annotated[str, pydantic.Field(pattern=NAMES)]
SecretPrefix = Annotated[str, pydantic.Field(pattern=PREFIXES)]
"""Without the slash at the end `vision` would be the name of one secret."""


@dataclass(frozen=True, kw_only=True)
class ManagedSecret:
    """A secret of AWS Secrets Manager. It must exist. This program never sees its value."""

    secrets_manager: SecretName
    """Name or ARN of the secret, such as vision/hf-token. It must be in `aws:region`."""
    key: Annotated[str, pydantic.Field(pattern=r"^[-._a-zA-Z0-9]+$")] | None = None
    """Key of the secret's JSON object, whose value is text. By default the variable gets the whole
    secret. Pods can read the other keys, too: IAM permits whole secrets only."""
    kms_key_arn: KeyArn | None = None
    """ARN of the KMS key of the secret, where it is not aws/secretsmanager. Not for a team that the
    environment lists: its entry has `kms_key_arns`."""


@dataclass(frozen=True, kw_only=True)
class SecretFiles:
    """The files that a job's variables are read from, as an object called by its content: a changed
    secret is another run, and a running one keeps what it began with."""

    name: str
    """Name of the SecretProviderClass."""
    parameters: Mapping[str, str]
    files: Mapping[str, str]
    """Variable → the file with its value, in FOLDER."""

    def object(self) -> Spec:
        """The SecretProviderClass, without its namespace."""
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": KIND,
            "metadata": {"name": self.name},
            "spec": {"provider": "aws", "parameters": dict(self.parameters)},
        }

    def volume(self) -> Spec:
        """Volume of a pod. The driver mounts nothing that could be written to."""
        attributes = {"secretProviderClass": self.name}
        csi = {"driver": DRIVER, "readOnly": True, "volumeAttributes": attributes}
        return {"name": VOLUME, "csi": csi}

    def mount(self) -> Spec:
        """Mount of a container, without a subPath: the files of a subPath never change."""
        return {"name": VOLUME, "mountPath": FOLDER, "readOnly": True}

    def exporting(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command, in whose environment the variables are. A missing file ends the pod."""
        lines = ["set -eu"]
        for variable, file in sorted(self.files.items()):
            lines += [f"{variable}=$(cat {FOLDER}/{file})", f"export {variable}"]
        return ("/bin/sh", "-c", "\n".join((*lines, RUNS_THE_REST)), "sh", *command)


def secret_files(job: str, secrets: Mapping[str, ManagedSecret], region: str) -> SecretFiles | None:
    """The files of a job's variables; None where it has none. `secrets`: by variable."""
    if not secrets:
        return None
    files = {variable: _file(variable, secrets) for variable in sorted(secrets)}
    objects = json.dumps([*_objects(secrets, files)], indent=1, sort_keys=True)
    parameters = {"objects": objects, "region": region, "usePodIdentity": "true"}
    return SecretFiles(
        name=f"{job}-secrets-{digest(parameters)[:8]}", parameters=parameters, files=files
    )


def _file(variable: str, secrets: Mapping[str, ManagedSecret]) -> str:
    """The file of a variable; variables with the whole of one secret have one in common. Its ending
    keeps it apart from names of secrets: the provider refuses an alias that is also the name of a
    secret (provider/secret_descriptor.go)."""
    wanted = secrets[variable]
    same = [
        each
        for each, secret in sorted(secrets.items())
        if (secret.secrets_manager, secret.key) == (wanted.secrets_manager, None)
    ]
    return f"{(same if wanted.key is None else [variable])[0]}.value"


def _objects(secrets: Mapping[str, ManagedSecret], files: Mapping[str, str]) -> Iterable[Spec]:
    """One entry for each secret: the provider refuses a second one. JSON is YAML, too."""
    variables: dict[str, list[str]] = {}
    for variable, secret in sorted(secrets.items()):
        variables.setdefault(secret.secrets_manager, []).append(variable)
    for name, its in variables.items():
        whole = [files[variable] for variable in its if secrets[variable].key is None]
        keys = [
            # A quoted name is a key whatever characters it has (JMESPath, identifiers).
            {"path": json.dumps(secrets[variable].key), "objectAlias": files[variable]}
            for variable in its
            if secrets[variable].key is not None
        ]
        yield {
            "objectName": name,
            "objectType": "secretsmanager",
            # The provider writes the whole secret in any case.
            "objectAlias": whole[0] if whole else f"{its[0]}.whole",
            **({"jmesPath": keys} if keys else {}),
        }


def covers(granted: str, wanted: str) -> bool:
    """True where a grant, a name, a prefix or an ARN, is about a secret, by its name or its ARN."""
    if granted == wanted:
        return True
    name, whose = _name(wanted), _name(granted)
    if granted.endswith("/"):
        return name.startswith(granted)
    return name == whose and not (SECRET_ARN.fullmatch(granted) and SECRET_ARN.fullmatch(wanted))


def _name(secret: str) -> str:
    found = SECRET_ARN.fullmatch(secret)
    return found["name"] if found else secret


def secret_statements(
    secrets: Iterable[str], keys: Iterable[str], *, region: str, account: str
) -> tuple[Document, ...]:
    """Read exactly these secrets, and use their keys through Secrets Manager only. `secrets`: names,
    prefixes and ARNs. `keys`: ARNs of KMS keys."""
    arns = secret_arns(secrets, region=region, account=account)
    if not arns:
        return ()
    via = {"StringEquals": {"kms:ViaService": f"secretsmanager.{region}.amazonaws.com"}}
    return (
        {"Sid": "Secrets", "Action": [*READS], "Resource": arns},
        *(
            {
                "Sid": f"SecretKey{number}",
                "Action": ["kms:Decrypt"],
                "Resource": key,
                "Condition": via,
            }
            for number, key in enumerate(sorted({*keys}))
        ),
    )


def secret_arns(secrets: Iterable[str], *, region: str, account: str) -> list[str]:
    """As a policy writes them: the end of a secret's ARN is not known before it exists."""
    at = f"arn:aws:secretsmanager:{region}:{account}:secret:"
    return [_pattern(each, at) for each in sorted({*secrets})]


def _pattern(secret: str, at: str) -> str:
    if SECRET_ARN.fullmatch(secret):
        return secret
    return f"{at}{secret}*" if secret.endswith("/") else f"{at}{secret}{RANDOM}"
