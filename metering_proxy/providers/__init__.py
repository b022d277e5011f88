"""Providers of models: the connections that exist, what each offers at what price, and how each is reached.

No tenants and no ledger here: `catalog.py` turns a model's name into one model of one connection.
"""
