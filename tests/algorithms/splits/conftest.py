import pytest

from algorithms.splits import exact, slots


@pytest.fixture(autouse=True)
def _index_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small indexes have nodes, and small storage be seen to ahead, for most streams are small.

    Compiled kernels do not see it.
    """
    monkeypatch.setattr(exact, "_SMALL", 24)
    monkeypatch.setattr(slots, "SPREAD", 8)
