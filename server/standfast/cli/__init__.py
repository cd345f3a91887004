"""The command line: each command asks the daemon over the wire and shows the answer. Holds no logic of sessions."""
