"""The local models: a chat model and an embeddings model that need no key and no network.

Each is a server of its own on a unix socket or on loopback, for the meter alone. Which models
these are, and what they cost in the demonstration, is provider data of the meter and not here.
"""
