"""The words that begin every prompt, as files."""

from pathlib import Path

SYSTEM = (Path(__file__).parent / "system.md").read_text().strip()
DEMO = (Path(__file__).parent / "demo.md").read_text().strip()
