"""Ways to ask a model through the meter: a small HTTP client, two wire formats, the list of models."""
