"""Services that moto is not asked about: one file for each, with its answers and its row."""
