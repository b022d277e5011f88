"""What the meter must know of each provider's wire: requests read and edited by splicing, usage found in answers.

Nothing here does I/O or knows of tenants, money limits or the ledger.
"""
