"""The ledger: holds before a call, entries after it, and the proof that sums agree.

Every write goes through one writer, which commits whatever is waiting as one transaction (decisions 0014
and 0022). `Ledger` in `ledger.py` is the way in; `batch.py` is the algorithm.
"""
