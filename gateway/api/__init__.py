"""What the browser's scripts speak: JSON and one event stream."""
