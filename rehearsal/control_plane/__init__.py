"""The rehearsal's Kubernetes control plane: etcd, API server, controller manager and scheduler as
processes."""

from rehearsal import kube, paths
from rehearsal.control_plane.control_plane import ControlPlane

__all__ = ["ControlPlane", "admin"]


def admin(world: paths.World, *, outside: bool = False) -> kube.Api:
    """The API server as system:masters: for the world's own parts, never for people or the program.
    `outside`: for a part that runs on the machine, where a private endpoint does not answer."""
    return kube.Api(
        f"https://127.0.0.1:{world.tunnel_port}" if outside else world.api_url,
        ca_file=str(paths.PLANE / "ca.crt"),
        cert_file=str(paths.PLANE / "admin.crt"),
        key_file=str(paths.PLANE / "admin.key"),
    )
