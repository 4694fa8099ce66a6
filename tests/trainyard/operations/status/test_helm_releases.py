"""`trainyard status` names the Helm releases that an update has left half done."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from rehearsal import paths
from tests.rehearsal.api_server import ApiServer
from trainyard.operations.reach.kubectl import kubectl_with
from trainyard.operations.status.helm_releases import ASKED, unended

HIDDEN = "bm9ib2R5LW1heS1zZWUtaXQ="
pytest_plugins = ("tests.rehearsal.api_server",)
TABLE = """\
kube-system      sh.helm.release.v1.karpenter.v1    helm.sh/release.v1   1   9m    karpenter   1    superseded
kube-system      sh.helm.release.v1.karpenter.v2    helm.sh/release.v1   1   3m    karpenter   2    failed
kueue-system     sh.helm.release.v1.kueue.v10       helm.sh/release.v1   1   3m    kueue       10   pending-upgrade
kueue-system     sh.helm.release.v1.kueue.v9        helm.sh/release.v1   1   9m    kueue       9    deployed
kubeflow-system  sh.helm.release.v1.trainer.v1      helm.sh/release.v1   1   9m    trainer     1    failed
kubeflow-system  sh.helm.release.v1.trainer.v2      helm.sh/release.v1   1   9m    trainer     2    deployed
"""


def test_the_newest_revision_says_how_a_release_was_left() -> None:
    def kubectl(*words: str) -> str:
        assert words == ASKED and not any(word.startswith("--output") for word in words), (
            "only of a table the API server sends no data of Secrets"
        )
        return TABLE

    failed, pending = map(str, unended("dev", kubectl, live=True))
    assert failed.startswith(
        "Helm release karpenter in namespace kube-system is failed at revision 2"
    )
    assert failed.endswith("pulumi up --stack dev, which upgrades it again")
    assert "kueue in namespace kueue-system is pending-upgrade at revision 10" in pending
    assert "→ trainyard repair --stack dev" in pending


def test_who_may_not_list_secrets_sees_no_release() -> None:
    def kubectl(*_: str) -> str:
        raise RuntimeError(
            'Error from server (Forbidden): secrets is forbidden: User "a" cannot list'
        )

    assert [*unended("dev", kubectl, live=True)] == []


def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    def kubectl(*_: str) -> str:
        raise RuntimeError("the API server does not answer")

    with pytest.raises(RuntimeError, match="does not answer"):
        list(unended("dev", kubectl, live=True))


def test_a_real_api_server_sends_the_labels_and_no_data(
    api_server: ApiServer, tmp_path: Path
) -> None:
    (tmp_path / "kubeconfig").write_text(api_server.kubeconfig())
    labels = {"owner": "helm", "name": "kueue", "version": "1", "status": "pending-install"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "helm.sh/release.v1",
        "metadata": {
            "name": "sh.helm.release.v1.kueue.v1",
            "namespace": "default",
            "labels": labels,
        },
        "data": {"release": HIDDEN},
    }
    api_server.admin.apply(secret, manager="tests")
    given = os.environ | {
        "KUBECONFIG": str(tmp_path / "kubeconfig"),
        "PATH": f"{paths.BIN}:{os.environ['PATH']}",
    }
    found = [*map(str, unended("dev", kubectl_with(lambda: given), live=False))]
    said = "Helm release kueue in namespace default is pending-install at revision 1"
    assert [each.partition("\n")[0] for each in found if " kueue " in each] == [said]
    assert HIDDEN not in _answers(given, *ASKED)
    assert HIDDEN in _answers(given, "get", "secrets", "--output=json")
    api_server.admin.delete(secret)


def _answers(environment: dict[str, str], *words: str) -> str:
    """All that kubectl prints, with the bodies of the API server's answers."""
    done = subprocess.run(["kubectl", *words, "-v=9"], capture_output=True, env=environment)
    assert done.returncode == 0
    return (done.stdout + done.stderr).decode()
