"""Sending of alerts to people: the plan and the configuration of Alertmanager, which publishes to
one SNS topic.

Which alerts there are: alerts.py.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from trainyard.plans.jobs import Spec
from trainyard.plans.topic import TopicPlan

APP = "alertmanager"
"""Name of its Deployment, of its service account, and the label of its pods."""
PORT = 9093
MILLICPUS = 50
"""CPU that its pod requests, in thousandths of a vCPU."""
FOLDER = "/etc/alertmanager"
FILE = "alertmanager.json"
TOPIC, NOBODY = "topic", "nobody"
"""Names of receivers."""
SUBJECT = "{{ .Status | toUpper }} {{ .CommonLabels.stack }}: {{ .CommonLabels.alertname }}"
"""Subject of an e-mail. SNS takes 100 characters of ASCII (API reference, Publish); Alertmanager
cuts."""
MESSAGE = (
    "{{ range .Alerts }}{{ .Status }} since {{ .StartsAt }}\n{{ .Annotations.summary }}.\n"
    "Fix: {{ .Annotations.fix }}.\n\n{{ end }}"
)
LONG_LIVED = "4h"
"""After which an alert that still fires is sent again, Alertmanager's own default."""


@dataclass(frozen=True, kw_only=True)
class AlertmanagerPlan:
    """Alertmanager and its topic."""

    image: str
    role_name: str
    region: str
    topic: TopicPlan
    severities: tuple[str, ...]
    """Severities of the alerts that are sent."""


def alertmanager_config(plan: AlertmanagerPlan, topic_arn: str) -> str:
    """alertmanager.yml, as JSON, which is YAML."""
    sent = "|".join(plan.severities)
    route: Spec = {
        "receiver": NOBODY,
        "group_by": ["alertname", "namespace", "run"],
        "repeat_interval": LONG_LIVED,
        "routes": [{"receiver": TOPIC, "matchers": [f'severity=~"{sent}"']}],
    }
    publishes: Spec = {
        "topic_arn": topic_arn,
        "sigv4": {"region": plan.region},
        "subject": SUBJECT,
        "message": MESSAGE,
    }
    receivers = [{"name": NOBODY}, {"name": TOPIC, "sns_configs": [publishes]}]
    return json.dumps({"route": route, "receivers": receivers}, indent=1, sort_keys=True)
