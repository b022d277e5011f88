"""The ledger: holds before a call, entries after it, and the proof that sums agree.

Every write goes through one writer, which commits whatever is waiting as one transaction with a savepoint each
(ARCHITECTURE, decision 12). `Ledger` in `ledger.py` is the way in; `batch.py` is the algorithm.
"""
