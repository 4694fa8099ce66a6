"""Trainyard: from a stack file to a distributed training job that runs."""
