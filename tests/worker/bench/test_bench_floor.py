import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from worker.bench.floor import count_entries
from worker.bench.sides import count_dense
from worker.bench.streams import sparse
from worker.bench.updates import workload
from worker.commands import main


def test_each_side_stands_over_one_before_it() -> None:
    """Each line says what its side costs more than the one that it adds a thing to; all but the first have one."""
    arguments = ["bench", "floor", "--data", "sparse:60,3,40,0.1", "--updates", "window:20", "--repeats", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["side"] for line in lines] == [
        *("read", "count-only", "random-access", "count-entries", "look-up", "count-slots", "count-hash"),
        *("exact-unasked", "exact"),
    ]
    took = {line["side"]: line["ns_per_one"] for line in lines}
    before: list[str | None] = [None]
    for line in lines:
        assert line["over"] in before
        less = took[line["over"]] if line["over"] else 0.0
        assert line["more_ns_per_one"] == pytest.approx(line["ns_per_one"] - less, rel=1e-3, abs=0.1)
        before.append(line["side"])


@pytest.mark.parametrize("updates", ["incremental", "window:20"])
def test_entries_hold_what_a_dense_array_counts(updates: str) -> None:
    """The table of entries counts each feature and label, through growth and deletes."""
    work = workload(sparse(200, 3, 400, 0.05), updates)
    dense = np.zeros((work.features, 2), np.int64)
    for batch in work.batches:
        count_dense(dense, batch)
    entries = count_entries(work)
    used = entries[entries[:, 0] != 0]
    assert len(used) > 16, "the table did not grow"
    found = np.zeros_like(dense)
    found[used[:, 0] & 0xFFFFFFFF] = np.stack([used[:, 1] & 0xFFFFFFFF, used[:, 1] >> 32], axis=1)
    assert np.array_equal(found, dense)


def test_a_wrong_stream_is_told(tmp_path: Path) -> None:
    """What is no stream ends with what was expected."""
    result = CliRunner().invoke(main, ["bench", "floor", "--data", str(tmp_path / "none.npz")])
    assert result.exit_code == 2
    assert "expected sparse:n,d1,d2,q" in result.stderr
