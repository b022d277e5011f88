"""The tenants' side: a listener for each tenant and generation, and what happens to a call that comes in there.

listeners, programs (sockets) → door (path, key) → calls (terms, hold) → sending (pump, tee: pass on and read)
→ ending (settling: what it used, what it is charged). A caller and its answer are an exchange; a call under way is
call_state's `Call`.
"""
