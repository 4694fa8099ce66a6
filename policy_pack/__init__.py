"""What a security team asks of every stack, as policies of Pulumi (CrossGuard)."""
