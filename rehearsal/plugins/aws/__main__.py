"""pulumi-resource-aws."""

from rehearsal.plugins.aws.provider import Aws
from rehearsal.plugins.base import serve

serve(Aws())
