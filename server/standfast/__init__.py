"""Standfast: a coding agent that survives kill -9 and loses nobody's edit."""

__version__ = "0.1.0"
