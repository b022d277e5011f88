"""Where Chromium is and how it is started here."""

import os
import shutil

# As root there is no sandbox to be had; the rest keeps it from the network and from a GPU.
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


def path() -> str | None:
    """ALCOVE_CHROMIUM, else the system's, else None."""
    return os.environ.get("ALCOVE_CHROMIUM") or shutil.which("chromium")
