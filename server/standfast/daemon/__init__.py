"""The daemon: composition root, socket, locks, spawn, shutdown, and the byte pump that editors start."""
