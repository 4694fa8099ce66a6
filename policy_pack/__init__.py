"""Rules of a security team for every stack, as policies of Pulumi (CrossGuard)."""
