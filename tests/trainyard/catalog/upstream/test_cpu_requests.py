"""CPU requests of charts are those of their values."""

from __future__ import annotations

import yaml

from tests.support.recording import CHECKOUT
from trainyard.catalog.upstream.cpu_requests import TRAINING_OPERATOR


def test_the_training_operator_requests_what_its_chart_says() -> None:
    values = (CHECKOUT / "components/charts/training-operator/values.yaml").read_text()
    assert yaml.safe_load(values)["resources"]["requests"]["cpu"] == f"{TRAINING_OPERATOR}m"
