"""`standfast demo`: a real daemon, editor protocol, project and SIGKILLs; only the model is scripted. `play` is the story."""
