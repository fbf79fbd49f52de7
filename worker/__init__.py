"""The worker: consumes event topics, keeps models, writes results. The main loop is in loop.py."""
