"""Claims of speed and accuracy, measured: ``certus bench`` runs a suite, ours and the peers in turns.

A suite is one small file in ``suites``: its docstring says what it shows, its function ``run`` yields what to measure.
"""

from certus.bench.cases import Case, Row, Skipped, data_folder

__all__ = ["Case", "Row", "Skipped", "data_folder"]
