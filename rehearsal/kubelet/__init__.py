"""Instances that boot, join the cluster and run pods: fleet.py starts one machine.py for each
running instance."""
