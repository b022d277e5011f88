"""Peers side by side. `make bench-<name>` runs `tests.bench.<name>`; the last line printed is one JSON object.

`cores`, `processes`, `targets`, `load`, `streams` and `report` are shared by every bench; a bench module
says only what is compared and which rows come out. Everything listens on loopback or in a temporary
directory, and is bounded in time and count.
"""
