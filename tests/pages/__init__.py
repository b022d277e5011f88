"""The pages: scripts under node, pages in a real Chromium, and a preview with sample data."""
