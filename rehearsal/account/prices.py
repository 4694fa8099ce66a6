"""What instances cost: USD an hour, On-Demand in us-east-1, as Karpenter 1.14.1 ships them (p5e is an estimate).

The rehearsal knows no other region's. Karpenter asks for the price list to choose between types.
"""

from __future__ import annotations

import json

from rehearsal.account import backends
from rehearsal.account.operations import Call, Fields, answers

PRICES = {"g5.48xlarge": 16.288, "g6.48xlarge": 13.3504, "g6e.12xlarge": 10.49264, "g6e.24xlarge": 15.06559,
          "g6e.48xlarge": 30.13118, "p4d.24xlarge": 21.957642, "p4de.24xlarge": 27.44705, "p5.48xlarge": 55.04,
          "p5e.48xlarge": 60.0, "p5en.48xlarge": 63.296, "p6-b200.48xlarge": 113.9328, "p6-b300.48xlarge": 142.416}
PER_VCPU = {"t3": 0.0208, "m5": 0.048, "m6i": 0.048, "m7i": 0.0504, "c5": 0.0425, "c6i": 0.0425, "c7i": 0.0446,
            "r6i": 0.063, "r7i": 0.0662, "m7g": 0.0408, "c7g": 0.0363, "g4dn": 0.1315, "g5": 0.25, "g6": 0.2,
            "g6e": 0.23}
"""Family → price of one vCPU, for types without a price of their own."""


def of(name: str) -> float:
    """The type's price; 0 where nobody knows."""
    vcpus = {one["InstanceType"]: one["VCpuInfo"]["DefaultVCpus"] for one in backends.instance_types()}
    return PRICES.get(name) or PER_VCPU.get(name.split(".")[0], 0) * vcpus.get(name, 0)


@answers("pricing", "GetProducts")
def _get_products(call: Call) -> Fields:
    """In the shape of AWS's price list as far as Karpenter reads it, which asks for metal by its tenancy."""
    metal = {one["Field"]: one["Value"] for one in call["Filters"] or ()}.get("tenancy") == "Dedicated"
    names = [one["InstanceType"] for one in backends.instance_types()]
    return {"FormatVersion": "aws_v1", "PriceList": [_product(name, of(name)) for name in names
                                                     if of(name) and name.endswith(".metal") is metal]}


def _product(name: str, usd: float) -> str:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": f"{usd:.10f}"}}
    return json.dumps({"product": {"attributes": {"instanceType": name}},
                       "terms": {"OnDemand": {"term": {"priceDimensions": {"hourly": dimension}}}}})
