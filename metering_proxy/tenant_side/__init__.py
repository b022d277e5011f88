"""The tenants' side: one listener for each tenant and generation, and what happens to a call that comes in there.

listeners (sockets) → connection (limits before a key is shown) → door (path, key) → call (hold, send, settle).
"""
