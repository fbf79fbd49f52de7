import ast
import threading
import time
from pathlib import Path
from typing import Any

import numba
import pytest

from algorithms import jit
from algorithms.jit import _OneAtATime, sources_of


class Index:
    """An index that says when two are in it at the same time."""

    inside = 0

    def save(self, key: Any, data: Any) -> None:  # noqa: ARG002
        """Take a while."""
        Index.inside += 1
        time.sleep(0.01)
        assert Index.inside == 1
        Index.inside -= 1

    def load(self, key: Any) -> Any:
        """Take a while."""
        self.save(key, None)
        return key


def test_one_process_at_a_time_is_in_the_index_of_kernels(tmp_path: Path) -> None:
    """What reads and changes the index has it alone, whoever else has opened it."""
    failed = []

    def work(number: int) -> None:
        index = _OneAtATime(Index(), str(tmp_path / "new"))
        try:
            for _ in range(5):
                index.save(number, b"")
                assert index.load(number) == number
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_where_no_lock_can_be_made_kernels_are_still_read(tmp_path: Path) -> None:
    """A cache that cannot be written to, such as one that came with an image, is used without a lock."""
    (tmp_path / "file").touch()
    assert _OneAtATime(Index(), str(tmp_path / "file")).load(7) == 7


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")
def test_kernels_go_through_the_lock() -> None:
    """Numba keeps a kernel's index where we put the lock before it."""

    @jit.jit
    def kernel(x: int) -> int:
        return x + 1

    assert isinstance(kernel._cache._cache_file, _OneAtATime)  # type: ignore[attr-defined]
    assert kernel(1) == 2


def _imported(source: Path) -> set[Path]:
    """Return the files of `algorithms` that a file imports, wherever in it."""
    here = Path(jit.__file__).parent
    found = set()
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "an import that says from where"
            names = [f"{node.module}.{each.name}" for each in node.names] + [node.module or ""]
        for name in names:
            if name.startswith("algorithms."):
                found.add(here.parent / Path(*name.split(".")).with_suffix(".py"))
    return {path for path in found if path.exists()}


def test_a_kernel_is_looked_up_by_all_that_it_is_made_of() -> None:
    """Whatever a file here imports, directly or not, is among the sources that name its kernels' folder."""
    here = Path(jit.__file__).parent
    for source in here.rglob("*.py"):
        reached, todo = set(), {source}
        while todo:
            reached |= todo
            todo = {each for path in todo for each in _imported(path)} - reached
        assert reached <= set(sources_of(source)), source
    assert len(sources_of(here / "splits.py")) < len(sources_of(here / "trees" / "grow.py"))
    assert Path(__file__) in sources_of(Path(__file__))
