"""Policy of a role that publishes to a topic of SNS."""

from __future__ import annotations

from trainyard.objects.iam.encryption import publishing_key
from trainyard.objects.iam.policies import Document, document


def publishing(topic_arn: str, key_arn: str | None) -> Document:
    """The policy of the role. `key_arn`: the key that encrypts the topic, where the environment made the
    topic; None where AWS's own key does. Who brings a topic lets the role use its key, too: nothing here
    says which key that is."""
    keys = [publishing_key(key_arn)] if key_arn else []
    return document(
        {"Sid": "Publish", "Action": "sns:Publish", "Resource": topic_arn},
        *keys,
    )
