"""Stands between agents and model providers: keys, quotas, reservations, the ledger, prices."""
