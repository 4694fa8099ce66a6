"""Stands in for the fleet: a process that runs."""

import time

if __name__ == "__main__":
    time.sleep(1000)
