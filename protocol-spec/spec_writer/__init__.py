"""Writes the machine-readable protocol from the method table and the types; one module an output format."""
