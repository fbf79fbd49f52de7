"""The command `publish`: what it says, where events go, and what it refuses."""

from pathlib import Path

import pytest

from tests.support.published import NOW, published, records_of, run
from worker.log.port import OutRecord
from worker.publishing.partitioners import crc32
from worker.publishing.publisher import Form

PLAIN = Form("t", 1, "k")


def test_what_it_says(tmp_path: Path) -> None:
    """It ends with what was written and what to run next, and shows no progress bar outside a terminal."""
    path, log = tmp_path / "t.svm", tmp_path / "events.db"
    path.write_text("1 1:1\n" * 1_234)
    result = run(path, "--log", log, "--topic", "t", "--batch", "1000", "--partitions", "4")
    assert result.stdout == (
        f"1,234 events in 2 records to t (4 partitions) of {log}\n"
        "next: anabranch run SETTINGS, with a model whose input is t (anabranch init writes them); then\n"
        f"      anabranch show {log} --topic t.out\n"
    )
    assert result.stderr == ""


def test_publishing_twice(tmp_path: Path) -> None:
    """What goes behind other records is said to, since a file that is published again is learned again."""
    path, log = tmp_path / "t.svm", tmp_path / "events.db"
    path.write_text("1 1:1\n" * 1_234)
    first, second = (run(path, "--log", log, "--topic", "t", "--partitions", 4) for _ in range(2))
    assert "behind" not in first.stdout
    assert f"1,234 events to t (4 partitions) of {log}, behind 1,234 records from before\n" in second.stdout


def test_a_topic_that_no_model_reads(tmp_path: Path) -> None:
    """It is written, and that nobody reads it is said instead of what to run."""
    settings, path = tmp_path / "worker.yaml", tmp_path / "t.svm"
    settings.write_text(
        f"log: {{embedded: {tmp_path / 'events.db'}}}\n"
        "models: {m: {kind: split, input: sms, classes: [0, 1], features: ids}}\n"
    )
    path.write_text("1 1:1\n")
    result = run(path, "--to", settings, "--topic", "smss")
    assert result.stdout.splitlines()[1:] == [
        f"no model of {settings} reads smss: set it as the input of one (now sms)"
    ]


def test_keys_choose_partitions(tmp_path: Path) -> None:
    """Every key goes to the partition that its checksum names, the same for ever."""
    assert [crc32(key, 4) for key in (b"", b"a", b"sms", "zoë".encode())] == [0, 3, 3, 0]
    log = tmp_path / "events.db"
    path = tmp_path / "t.csv"
    path.write_text("y,k\n" + "".join(f"1,key{n % 10}\n" for n in range(50)))
    assert run(path, "--log", log, "--topic", "t", "--partitions", 4, "--label", "y", "--key", "k").exit_code == 0
    for partition, records in enumerate(records_of(log)):
        assert {crc32(key or b"", 4) for key in records.keys} <= {partition}
    # A second file goes to the topic as it is.
    assert run(path, "--log", log, "--topic", "t", "--label", "y", "--key-value", "one").exit_code == 0
    assert sum(key == b"one" for records in records_of(log) for key in records.keys) == 50


def test_dry_run(tmp_path: Path) -> None:
    """A dry run prints the first events as JSON lines that can be published, and writes nothing."""
    path, log = tmp_path / "t.txt", tmp_path / "events.db"
    path.write_text("".join(f"ham\tword{n}\n" for n in range(9)))
    result = run(path, "--log", log, "--topic", "t", "--dry-run")
    assert result.exit_code == 0
    assert not log.exists()
    assert result.stdout.splitlines()[0] == '{"key": "t", "x": ["word0"], "y": "ham"}'
    again = published(tmp_path, "u.jsonl", result.stdout)
    assert again == published(tmp_path, "t.txt", path.read_text(), "--limit", "5")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.dat"], "expected a suffix among .csv, .tsv"),
        (["a.txt", "--label", "y"], "expected no options about columns, text has none"),
        (["a.jsonl", "--label", "y"], "jsonl has none; leave them out or say --format jsonrows"),
        (["a.csv", "--label", "y", "--numeric", "y"], "expected one use of each column, got several of 'y'"),
        (["a.parquet", "--no-header"], "expected no --header and --delimiter with Parquet"),
        (["a.csv", "--encoding", "klingon"], "expected an encoding that Python knows, got 'klingon'"),
        (
            ["a.csv", "--label", "y", "--key", "k", "--key-value", "v"],
            "expected --key or --key-value, got both",
        ),
        (["a.jsonl", "--number-ids"], "expected --number-ids where the file has no ids"),
        (["a.svm", "--packed", "--batch", "3"], "expected --packed or --batch, got both"),
        (["a.txt", "--packed"], "expected integer features for --packed, text gives names"),
        (["a.txt", "--map-label", "ham"], "expected OLD=NEW, got 'ham'"),
        (["a.txt"], "expected --log FILE"),
    ],
)
def test_usage(arguments: list[str], message: str) -> None:
    """Options that mean nothing together are refused before anything is read."""
    result = run(*arguments, "--topic", "t")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_missing_file_leaves_no_log(tmp_path: Path) -> None:
    """A wrong path is told, and no empty log is left behind."""
    result = run(tmp_path / "none.txt", "--log", tmp_path / "events.db", "--topic", "t")
    assert (result.exit_code, result.stderr.count("expected a file to read, got none")) == (1, 1)
    assert not (tmp_path / "events.db").exists()


def test_another_number_of_partitions(tmp_path: Path) -> None:
    """A topic keeps its partitions; asking for others is refused by the log."""
    (tmp_path / "t.txt").write_text("a\tb\n")
    arguments = (tmp_path / "t.txt", "--log", tmp_path / "events.db", "--topic", "t", "--partitions")
    assert run(*arguments, 2).exit_code == 0
    result = run(*arguments, 3)
    assert result.exit_code == 1
    assert "it exists with 2" in result.stderr


def test_recordings_are_reproducible(tmp_path: Path) -> None:
    """With a fixed timestamp the same file gives the same records."""
    text = "a\tx\nb\ty\n"

    def written() -> list[OutRecord]:
        published(tmp_path, "t.txt", text)
        (records,) = records_of(tmp_path / "events.db")
        rows = zip(records.keys, records.values, records.headers, records.timestamps.tolist(), strict=True)
        return [OutRecord("t", 0, *row) for row in rows]

    assert written() == written()
    assert {record.timestamp for record in written()} == {NOW}
