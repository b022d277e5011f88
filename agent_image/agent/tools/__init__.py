"""What the assistant can do besides talking: small functions with types, and the rules that guard them."""
