"""Logs of training scripts: what their lines mean."""
