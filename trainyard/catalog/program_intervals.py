"""Seconds between two looks of the programs of ours that run in the cluster."""

from __future__ import annotations

LOOK_SECONDS = {"repair": 3, "history": 15, "gangs": 15, "told": 5}
"""Folder of the program in trainyard/in_cluster/ → seconds between two looks. The repair notices within one look that
a node is silent (trainyard/catalog/repair.py). The history hears of each pod that is deleted; where its watch is
interrupted, it knows the end of such a pod as exactly as one look. Told reads the last words of a rank before the
training-operator deletes its pod."""
