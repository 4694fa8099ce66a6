"""Everything that a file names must be there, or somebody must make it: the problems of a whole file."""

from __future__ import annotations

from collections.abc import Sequence

from trainyard.manifests.context import ManifestContext
from trainyard.manifests.names.around import Around
from trainyard.manifests.names.given import given_problems
from trainyard.manifests.names.hosts import host_problems
from trainyard.manifests.names.inside import inside_problems
from trainyard.manifests.names.nobody import nobody_problems
from trainyard.manifests.names.objects import object_problems
from trainyard.problems import InputError, InputWarning


def name_problems(
    contexts: Sequence[ManifestContext], around: Around
) -> list[InputError | InputWarning]:
    """Every error and warning about names. `contexts`: of the objects that go to the cluster."""
    return [
        *given_problems(contexts, around),
        *object_problems(contexts, around),
        *inside_problems(contexts, around),
        *nobody_problems(contexts, around),
        *host_problems(contexts, around),
    ]
