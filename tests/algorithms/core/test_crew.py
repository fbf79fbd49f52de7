"""A crew of threads: all tasks are done, errors come out, threads come late and end."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import pytest

from algorithms.core.crew import Crew


def _helpers() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("crew ")]


def _until_none_is_left() -> None:
    deadline = time.monotonic() + 10
    while _helpers():
        assert time.monotonic() < deadline, "threads do not end"
        time.sleep(0.001)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_all_tasks_are_run_once(threads: int, count: int) -> None:
    """With fewer tasks than threads, or more, whatever came before."""
    crew, done = Crew(threads), list[int]()
    for _ in range(20):
        crew.run([lambda at=at: done.append(at) for at in range(count)])  # type: ignore[misc]
    assert sorted(done) == sorted(list(range(count)) * 20)


def test_tasks_run_side_by_side() -> None:
    """Two tasks that wait for each other come to an end."""
    met = threading.Barrier(2, timeout=10)
    Crew(2).run([met.wait, met.wait])


def test_threads_are_started_late_and_end_with_the_crew() -> None:
    """Who never has two tasks starts none; who is forgotten leaves none."""
    _until_none_is_left()
    crew = Crew(3)
    crew.run([lambda: None])
    assert not _helpers()
    crew.run([lambda: None, lambda: None])
    assert _helpers() == ["crew 1", "crew 2"]
    crew.run([lambda: None] * 5)
    assert len(_helpers()) == 2
    del crew
    gc.collect()
    _until_none_is_left()


@pytest.mark.parametrize("threads", [1, 4])
def test_the_error_of_the_first_task_comes_out_once_all_are_done(threads: int) -> None:
    """Which that is does not depend on threads, and the crew goes on."""
    crew, done = Crew(threads), list[int]()

    def fail(number: int) -> None:
        time.sleep(0.01 * (3 - number))
        raise ValueError(f"task {number}")

    tasks = [lambda: done.append(0), lambda: fail(1), lambda: fail(2), lambda: done.append(3)]
    for _ in range(3):
        done.clear()
        with pytest.raises(ValueError, match="task 1"):
            crew.run(tasks)
        assert sorted(done) == [0, 3]


def test_an_interrupt_waits_for_the_others() -> None:
    """Nobody works on when the caller has the error."""
    done = list[int]()

    def slow() -> None:
        time.sleep(0.05)
        done.append(1)

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Crew(2).run([interrupt, slow, slow])
    assert done == [1, 1]


def test_an_interrupt_of_who_waits_waits_too() -> None:
    """As with Ctrl+C while another thread has the last task."""
    done, helper = list[int](), threading.Event()

    def of_the_helper() -> None:
        helper.set()
        time.sleep(0.1)
        done.append(1)

    def of_the_caller() -> None:
        assert helper.wait(10)

    def act() -> None:
        if threading.current_thread() is threading.main_thread():
            of_the_caller()
        else:
            of_the_helper()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            Crew(2).run([act, act])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert done == [1]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # Python 3.12 warns where there are threads
def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    """Those of its parent are not there."""
    crew = Crew(2)
    crew.run([lambda: None, lambda: None])
    met: list[int] = []
    child = os.fork()
    if not child:
        crew.run([lambda: met.append(1), lambda: met.append(2)])
        os._exit(0 if sorted(met) == [1, 2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("threads", [0, 65, 1.5, True])
def test_wrong_numbers_of_threads_are_refused(threads: int) -> None:
    """What was expected is told."""
    with pytest.raises(ValueError, match="threads, a whole number from 1 to 64"):
        Crew(threads)
