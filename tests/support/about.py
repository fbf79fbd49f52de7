"""What pages say that runs, where a test does not care."""

from __future__ import annotations

from worker.watching.status import About

ABOUT = About("1.2.3", "0123456789abcdef" * 4, started=0.0)
