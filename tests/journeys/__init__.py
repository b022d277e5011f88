"""Whole stories through real services: real processes, real sockets, real databases.

`house.py` starts what `alcove run` starts, `person.py` is somebody who uses it, `evidence.py` reads what
the databases hold. A story looks at both sides, never at one alone.
"""
