"""Stories in a real Chromium: what the page shows is compared with what the databases hold."""
