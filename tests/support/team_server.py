"""An API server with what an environment makes for two teams, taken from the recorded graph, and
clients that act as somebody of a team."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import urllib3

from rehearsal import paths, processes
from rehearsal.kube import Api, ApiError, Object
from tests.rehearsal.api_server import PROGRAMS, TOKEN, ApiServer, start
from tests.support.patience import until
from tests.support.recording import CHECKOUT, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit
from trainyard.catalog import versions
from trainyard.objects.teams.team_access import EVERYBODY, group_name

ROLE = "arn:aws:iam::111122223333:role"
PREFIX = "registry.example.com/vision/"
TEAMS: dict[str, Any] = {
    "vision": {
        "deployer": f"{ROLE}/vision-deployer",
        "members": [f"{ROLE}/vision"],
        "viewers": [f"{ROLE}/auditors"],
        "max_gpus": 16,
        "max_jobs": 2,
        "stores": ["scratch"],
        "allowed_priorities": ["high"],
        "image_prefixes": [PREFIX],
    },
    "nlp": {"deployer": f"{ROLE}/nlp-deployer"},
}
LEGACY = {"version": versions.TRAINING_OPERATORS[-1]}
PRIORITIES = {"high": 1000, "urgent": 2000}
CHARTS = CHECKOUT / "components" / "charts"
CRDS = (
    *sorted(CHARTS.glob("kubeflow-trainer-crds-2.1.0/templates/*.yaml")),
    CHARTS / "training-operator/files/kubeflow.org_pytorchjobs.yaml",
)


def environment_with_teams() -> Graph:
    """The graph of the dev environment with TEAMS, each with a directory of its own."""

    def changes(values: dict[str, Any]) -> None:
        values[ENVIRONMENT] |= {
            "teams": TEAMS,
            "priorities": PRIORITIES,
            "training_operator": LEGACY,
        }
        for store in values[ENVIRONMENT]["storage"].values():
            store["teams"] = "apart"

    return deploy("dev", changes)


def environment_with_queues(trainer: str = "2.1.0", *edits: Edit) -> Graph:
    """Environment of these teams with queues: vision is guaranteed 2 of the 4 nodes of g6e, and can
    say `normal` at most. `trainer`: its release."""
    without = ("max_gpus", "allowed_priorities")
    vision = {key: value for key, value in TEAMS["vision"].items() if key not in without}
    share = {"guaranteed_nodes": {"g6e": 2}, "max_urgency": "normal", "max_jobs": 50}

    def changes(values: dict[str, Any]) -> None:
        values[ENVIRONMENT] |= {
            "queues": {},
            "teams": {
                "vision": vision | share,
                "nlp": TEAMS["nlp"],
            },
            "training_operator": LEGACY,
            "jobs": {},
        }
        values[ENVIRONMENT]["trainer"]["version"] = trainer
        for edit in edits:
            edit(values[ENVIRONMENT])

    return deploy("dev", changes)


def environment_with_secrets() -> Graph:
    """Environment of these teams in which vision reads its own secrets of Secrets Manager."""

    def changes(values: dict[str, Any]) -> None:
        vision = TEAMS["vision"] | {"secrets": ["vision/"]}
        values[ENVIRONMENT] |= {
            "teams": TEAMS | {"vision": vision},
            "priorities": PRIORITIES,
            "training_operator": LEGACY,
        }

    return deploy("dev", changes)


def environment_with_schedules() -> Graph:
    """The environment with queues, in which jobs of vision can have schedules."""

    def allowed(environment: dict[str, Any]) -> None:
        environment["teams"]["vision"]["schedules"] = True

    return environment_with_queues("2.1.0", allowed)


class As(Api):
    """The administrator in the name of somebody else."""

    def __init__(self, server: ApiServer, user: str, *groups: str) -> None:
        super().__init__(server.url, ca_file=server.authority, token=lambda: TOKEN)
        self._user, self._groups = user, (*groups, "system:authenticated")

    def _headers(self, content_type: str) -> Any:
        found = urllib3.HTTPHeaderDict(super()._headers(content_type))
        found.add("Impersonate-User", self._user)
        for group in self._groups:
            found.add("Impersonate-Group", group)
        return found


@dataclass(frozen=True, kw_only=True)
class TeamServer:
    """The API server with both teams on it."""

    server: ApiServer
    objects: dict[str, Object]
    """"<kind> <name>" → what the environment made."""

    @property
    def admin(self) -> Api:
        return self.server.admin

    def of(self, role: str) -> Api:
        """Somebody of the team vision: deployer, member or viewer. `job-controller`: whoever makes
        the pods of its jobs."""
        if role == "job-controller":
            return As(self.server, "system:serviceaccount:kube-system:job-controller")
        return As(self.server, f"the {role}", group_name("team-vision", role), EVERYBODY)

    def may(self, role: str, verb: str, resource: str, group: str = "") -> bool:
        """True where somebody of the team vision has the right, as the API server answers them."""
        return allowed(self.of(role), verb, resource, group, namespace="team-vision")

    def put(self, made: Object) -> None:
        self.admin.apply(made, manager="tests")


def allowed(api: Api, verb: str, resource: str, group: str, **where: str) -> bool:
    """True where whoever asks has the right, as the API server answers them: in the namespace of `where`, or
    everywhere."""
    asked = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource, **where}
        },
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return api.request("POST", path, asked)["status"]["allowed"]


def refusal(api: Api, method: str, path: str, body: Object | None = None) -> str:
    """The API server's reason to forbid a request, as a dry run; empty where it allows it. Raises
    ApiError for any other answer."""
    kind = "merge-patch+json" if method == "PATCH" else "json"
    try:
        api.request(
            method,
            f"{path}{'&' if '?' in path else '?'}dryRun=All",
            body,
            content_type=f"application/{kind}",
        )
    except ApiError as error:
        if error.code != 403:
            raise
        return str(error)
    return ""


@contextmanager
def team_server(
    folder: Path, environment: Callable[[], Graph] = environment_with_teams
) -> Iterator[TeamServer]:
    """A server without nodes and without Kueue; skips the test where the toolchain was never
    built."""
    if missing := [name for name in PROGRAMS if not (paths.BIN / name).exists()]:
        pytest.skip(f"needs {', '.join(missing)} of the rehearsal's toolchain")
    graph = environment()
    with ExitStack() as stack:
        server = start(stack, folder, crds=CRDS)
        made = TeamServer(server=server, objects=team_objects(graph))
        for each in made.objects.values():
            made.put(each)
        for name, value in PRIORITIES.items():
            made.put(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )
        until(lambda: _settled(made), lambda: "quotas, accounts or policies are not at work")
        yield made


def team_objects(graph: Graph) -> dict[str, Object]:
    """Objects that the environment makes for its teams, but not for Kueue; namespaces come
    first. The policy for pods and its binding come last: `probe` finds them at work when all others are."""
    found = {
        f"{node.inputs['kind']} {node.inputs['metadata']['name']}"
        f"{' of ' + space if (space := node.inputs['metadata'].get('namespace', '')) else ''}": (
            json.loads(json.dumps(node.inputs))
        )
        for node in graph.starting("kubernetes:")
        if _belongs_to_teams(graph, node.options.parent) and "kueue" not in node.kind
    }
    last = "trainyard-team-pods"
    return dict(
        sorted(found.items(), key=lambda it: (not it[0].startswith("Namespace "), last in it[0]))
    )


def _belongs_to_teams(graph: Graph, parent: str) -> bool:
    while parent in graph.nodes:
        if graph.nodes[parent].kind.startswith("trainyard:teams:"):
            return True
        parent = graph.nodes[parent].options.parent
    return False


def _settled(made: TeamServer) -> bool:
    """True once controllers have counted quotas and made service accounts, and the policies
    refuse."""
    quotas = made.admin.request("GET", "/api/v1/namespaces/team-vision/resourcequotas")["items"]
    account = made.admin.request("GET", "/api/v1/namespaces/team-vision/serviceaccounts")["items"]
    unknown = [each for each in quotas if not _counted(each)]
    for each in unknown:
        _make_again(made, f"ResourceQuota {each['metadata']['name']} of team-vision")
    return bool(not unknown and account and refusal(*probe(made)))


def _make_again(made: TeamServer, name: str) -> None:
    """A quota that is older than a kind in it is looked at every 5 minutes only."""
    quota = made.objects[name]["metadata"]
    at = f"/api/v1/namespaces/{quota['namespace']}/resourcequotas/{quota['name']}"
    made.admin.request("DELETE", at)
    made.put(made.objects[name])
    processes.wait(lambda: _counted(made.admin.request("GET", at)), seconds=5)


def _counted(quota: Object) -> bool:
    """True once the usage of all that a quota limits is known: `status.hard` is complete before it
    is."""
    return {*quota["spec"]["hard"]} == {*quota.get("status", {}).get("used", {})}


@contextmanager
def without_rule(made: TeamServer, message: str) -> Iterator[None]:
    """The policies without the rule that refuses with this message."""
    whole = [
        each
        for each in made.objects.values()
        if each["kind"] == "ValidatingAdmissionPolicy" and message in _messages(each)
    ]
    assert whole, f"no policy says {message!r}"
    for policy in whole:
        less = copy.deepcopy(policy)
        less["spec"]["validations"] = [
            each for each in less["spec"]["validations"] if each["message"] != message
        ]
        made.put(less)
    try:
        yield
    finally:
        for policy in whole:
            made.put(policy)


def _messages(policy: Object) -> list[str]:
    return [each["message"] for each in policy["spec"]["validations"]]


def probe(made: TeamServer) -> tuple[Api, str, str, Object]:
    """A request that only the policy for pods refuses."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "team-vision"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": f"{PREFIX}a:1"}]},
    }
    return made.of("job-controller"), "POST", "/api/v1/namespaces/team-vision/pods", pod
