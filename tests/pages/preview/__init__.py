"""Every page with sample data on loopback, and a chat page with a scripted assistant behind it.

`python -m tests.pages.preview` prints where to look. Designers work here without the back end, and the
browser tests of this room run against it. Nothing here is part of the gateway.
"""
