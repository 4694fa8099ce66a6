"""Programs of others that the words call."""

PAGES = {
    "pulumi": "https://www.pulumi.com/docs/install",
    "kubectl": "https://kubernetes.io/docs/tasks/tools",
    "helm": "https://helm.sh/docs/intro/install",
}
"""Program → the page that says how to install it."""


def not_on_path(program: str) -> str:
    """A sentence where this program is not found, with the way out."""
    page = PAGES.get(program)
    install = f"install it ({page})" if page else "install it"
    return f"{program} is not on PATH. Fix: {install}, or add its folder to PATH"
