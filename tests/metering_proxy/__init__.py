"""Tests of the metering proxy, over real sockets wherever bytes, time or money are concerned."""
