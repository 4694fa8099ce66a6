"""Grafana, which shows the pages of dashboards.py beside Prometheus: its files, and who reaches it.

It keeps nothing: settings, data source and pages are files of one ConfigMap. Names of settings:
conf/defaults.ini of grafana/grafana 13.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.objects.metrics.metrics import INTERVAL_SECONDS, NAMESPACE
from trainyard.objects.metrics.metrics import PORT as PROMETHEUS_PORT
from trainyard.objects.teams.team_network import RESOLVES
from trainyard.plans.jobs import Spec

APP = "grafana"
"""Name of its Deployment and its Service, and the label of its pods."""
PORT = 3000
FOLDER, DATA = "/etc/grafana", "/var/lib/grafana"
"""Folders of its files, and of its database, which begins empty with each pod."""
PAGES = "dashboards"
"""Folder of the pages, below FOLDER."""
VIEW = f"kubectl --namespace {NAMESPACE} port-forward service/{APP} {PORT}"
"""Command that shows it at http://localhost:3000."""
SOURCE = f"http://prometheus.{NAMESPACE}:{PROMETHEUS_PORT}"
"""The data source: the Prometheus of the environment."""
MILLICPUS, MEMORY_MIB = 100, 1024
"""With its bundled plugins, each a process, it takes 300 to 600 MiB (grafana/grafana#123017)."""

SETTINGS: Mapping[str, Mapping[str, str]] = {
    # Nobody has a password: there is no user, no form and no basic authentication, only looking.
    "auth": {"disable_login_form": "true"},
    "auth.anonymous": {"enabled": "true", "org_role": "Viewer"},
    "auth.basic": {"enabled": "false"},
    "security": {"disable_initial_admin_creation": "true", "disable_gravatar": "true"},
    # Nothing calls grafana.com. An update of the bundled data source would remove it: the root file
    # system cannot be written (grafana/grafana#132528).
    "plugins": {"preinstall_disabled": "true", "plugin_admin_enabled": "false"},
    "analytics": {
        "reporting_enabled": "false",
        "check_for_updates": "false",
        "check_for_plugin_updates": "false",
        "feedback_links_enabled": "false",
    },
    "news": {"news_feed_enabled": "false"},
    "snapshots": {"enabled": "false"},
    # Prometheus judges the alerts.
    "unified_alerting": {"enabled": "false"},
    "server": {"enable_gzip": "false"},  # takes gigabytes in Grafana 13 (grafana/grafana#123017)
    "dashboards": {"default_home_dashboard_path": f"{FOLDER}/{PAGES}/fleet.json"},
}


def files(pages: Mapping[str, str]) -> dict[str, str]:
    """All files of Grafana. `pages`: name → dashboard."""
    source: Spec = {
        "name": "Prometheus",
        "uid": "prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": SOURCE,
        "isDefault": True,
        "editable": False,
        "jsonData": {"timeInterval": f"{INTERVAL_SECONDS}s", "httpMethod": "POST"},
    }
    provider: Spec = {
        "name": "trainyard",
        "type": "file",
        "disableDeletion": True,
        "allowUiUpdates": False,
        "options": {"path": f"{FOLDER}/{PAGES}"},
    }
    return {
        "grafana.ini": _ini(),
        "provisioning/datasources/trainyard.yaml": _yaml(datasources=[source]),
        "provisioning/dashboards/trainyard.yaml": _yaml(providers=[provider]),
        **{f"{PAGES}/{name}.json": page for name, page in pages.items()},
    }


def _ini() -> str:
    lines = [
        f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())
        for section, values in SETTINGS.items()
    ]
    return "\n".join(lines)


def _yaml(**entries: list[Spec]) -> str:
    """A file of provisioning, as JSON, which is YAML."""
    return json.dumps({"apiVersion": 1, **entries}, indent=1, sort_keys=True)


def policy_spec() -> Any:
    """The spec of its NetworkPolicy. No pod reaches it: a port-forward comes from its own node, and so
    do probes. It reaches Prometheus and DNS."""
    prometheus = {"podSelector": {"matchLabels": {LABEL: "prometheus"}}}
    return {
        "podSelector": {"matchLabels": {LABEL: APP}},
        "policyTypes": ["Ingress", "Egress"],
        "egress": [
            RESOLVES,
            {"to": [prometheus], "ports": [{"protocol": "TCP", "port": PROMETHEUS_PORT}]},
        ],
    }
