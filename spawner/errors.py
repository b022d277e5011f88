"""Why a spawner does not begin to serve. Whatever goes wrong later is an AlcoveError with a code."""


class CannotServe(Exception):
    """The message is a sentence for the operator that names the remedy."""


class NoRuntime(CannotServe):
    """Instances cannot run on this machine as the settings ask."""


class NotMigrated(CannotServe):
    """The database is not of the newest shape."""


class Taken(CannotServe):
    """Another spawner works on the same sockets root."""
