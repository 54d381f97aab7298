"""One file for each suite."""
