"""A sandbox lives as Lambda's execution environment does."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.processes import Guard
from local.sandbox import InitError, Invocation, Runner
from local.template import Template
from tests.laptop.projects import alive, function, until, write_project

APP = """
    import json, os, signal, subprocess, sys, threading, time

    count = 0
    steady = threading.Thread(target=threading.Event().wait, name="from-init", daemon=True)
    steady.start()

    def environment(event, context):
        return dict(os.environ)

    def echo(event, context):
        global count
        count += 1
        return {"event": event, "pid": os.getpid(), "count": count}

    def about(event, context):
        return {name: getattr(context, name) for name in dir(context)
                if isinstance(getattr(context, name), (str, int))
                } | {"remaining": context.get_remaining_time_in_millis()}

    def unserialisable(event, context):
        return {1, 2}

    def huge(event, context):
        return "x" * (6 * 1024 * 1024 + 200)

    def span(event, context):
        start = time.monotonic()
        time.sleep(0.15)
        return [os.getpid(), start, time.monotonic()]

    def slow(event, context):
        child = subprocess.Popen(["sleep", "60"])
        with open(event["file"], "w") as file:
            file.write(json.dumps([os.getpid(), child.pid]))
        time.sleep(60)

    def crash(event, context):
        if event.get("fork") and os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        if event.get("signal"):
            os.kill(os.getpid(), event["signal"])
        if event.get("exit") is not None:
            sys.exit(event["exit"])
        if event.get("raise"):
            raise LookupError("not here")
        return os.getpid()

    def share(event, context):
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
        from multiprocessing.shared_memory import SharedMemory

        told = []
        for make in (ProcessPoolExecutor, multiprocessing.Queue, lambda: multiprocessing.Pool(1),
                     lambda: SharedMemory(create=True, size=1)):
            try:
                make()
            except OSError as error:
                told.append(str(error))
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.Process(target=theirs.send, args=(7,))
        child.start()
        return [*told, ours.recv(), *ThreadPoolExecutor().map(abs, [-1])]

    def talk(event, context):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        subprocess.run(["echo", "from a child"])

    def tick(file):
        while True:
            with open(file, "a") as out:
                out.write(".")
            time.sleep(0.01)

    def brief(end):
        end.wait(); return

    def swap(event, context):
        if event == "first":
            swap.end = threading.Event()
            swap.thread = threading.Thread(target=brief, args=[swap.end], name="first")
            swap.thread.start()
            return swap.thread.ident
        swap.end.set()
        swap.thread.join()
        second = threading.Thread(target=time.sleep, args=[60], name="second", daemon=True)
        second.start()
        return second.ident

    def leak(event, context):
        what = event.get("leak")
        if what == "thread":
            threading.Thread(target=tick, args=[event["file"]], name="mail-the-customer").start()
        if what == "process":
            code = "import time\\nwhile True: open(%r, 'a').write('.'); time.sleep(0.01)"
            return subprocess.Popen([sys.executable, "-c", code % event["file"]]).pid
        if what == "daemon":
            subprocess.run(["sh", "-c", "setsid sleep 77 > /dev/null 2>&1 &"]); time.sleep(0.3)
        if what == "ended":
            subprocess.Popen(["true"]); time.sleep(0.2)
            thread = threading.Thread(target=print, name="short"); thread.start(); thread.join()
        return os.getpid()
"""


class Functions:
    """Runners of the handlers in APP, without an emulator."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.guard = Guard()
        self.log: list[str] = []
        self.finished: list[Invocation] = []
        self.runners: list[Runner] = []

    def __call__(self, handler: str, limit: int = 5, reclaim: bool = False, **p: Any) -> Runner:
        project = self.folder / f"p{len(self.runners)}"
        write_project(project, {"Fn": function(f"app.{handler}", **p)}, {"app": APP})
        (spec,) = Template.load(project / "template.yaml").functions()
        runner = Runner(
            function=spec,
            environment={"GIVEN": "yes"},
            limit=limit,
            reclaim=reclaim,
            guard=self.guard,
            folder=str(self.folder),
            log=lambda name, line: self.log.append(f"{name}: {line}"),
            finished=self.finished.append,
        )
        self.runners.append(runner)
        return runner

    def settled(self, runner: Runner, event: Any = None) -> Invocation:
        """Invoke, and wait until the sandbox is frozen (or gone) again."""
        before = len(self.finished)
        invocation = runner.invoke(event).result(20)
        until(lambda: len(self.finished) > before)
        return invocation


@pytest.fixture
def functions(tmp_path: Path) -> Iterator[Functions]:
    made = Functions(tmp_path)
    yield made
    for runner in made.runners:
        runner.close()
    made.guard.close()


def test_its_environment_is_clean(functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "real")
    found = functions("environment", MemorySize=256).invoke({}).result().result
    assert "AWS_PROFILE" not in found
    assert "real" not in found.values()
    assert found["GIVEN"] == "yes"
    assert found["AWS_CONFIG_FILE"] == found["AWS_SHARED_CREDENTIALS_FILE"] == os.devnull
    assert found["AWS_LAMBDA_FUNCTION_NAME"] == "Fn"
    assert found["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "256"
    assert set(found) <= {
        "PATH",
        "LANG",
        "TZ",
        "TMPDIR",
        "GIVEN",
        "LC_CTYPE",
        "_HANDLER",
        "_X_AMZN_TRACE_ID",
        "PYTHONDONTWRITEBYTECODE",
        *(n for n in found if n.startswith(("AWS_", "LAMBDA_"))),
    }


def test_it_is_a_process_of_its_own(functions: Functions) -> None:
    assert functions("echo").invoke({}).result().result["pid"] != os.getpid()


def test_init_happens_once_and_the_sandbox_is_reused(functions: Functions) -> None:
    echo = functions("echo")
    first, second = functions.settled(echo), functions.settled(echo)
    assert first.result["pid"] == second.result["pid"]
    assert [first.result["count"], second.result["count"]] == [1, 2]
    assert [first.cold, second.cold] == [True, False]


def test_json_goes_in_and_out(functions: Functions) -> None:
    event = {"text": "naïve ☃", "list": [1, None, True], "nested": {"a": 1.5}}
    assert functions("echo").invoke(event).result().result["event"] == event
    refused = functions("unserialisable").invoke({}).result()
    assert refused.error is not None
    assert refused.error["errorType"] == "Runtime.MarshalError"


def test_the_context_is_real(functions: Functions) -> None:
    invocation = functions("about", Timeout=7, MemorySize=256).invoke({}).result()
    context = invocation.result
    assert context["aws_request_id"] == invocation.request_id
    assert context["invoked_function_arn"] == "arn:aws:lambda:us-east-1:000000000000:function:Fn"
    assert (context["function_name"], context["memory_limit_in_mb"]) == ("Fn", "256")
    assert 0 < context["remaining"] <= 7000


def test_a_response_above_6_mb_is_refused(functions: Functions) -> None:
    error = functions("huge").invoke({}).result().error
    assert error is not None
    assert error["errorType"] == "Function.ResponseSizeTooLarge"


def test_one_event_at_a_time(functions: Functions) -> None:
    span = functions("span", limit=4)
    functions.settled(span)  # so that one is warm, for which they could all reach
    spans = [f.result().result for f in [span.invoke({}) for _ in range(4)]]
    for one in spans:
        for other in spans:
            if one is not other and one[0] == other[0]:
                assert one[2] <= other[1] or other[2] <= one[1]
    assert len({pid for pid, _, _ in spans}) > 1


def test_concurrency_has_a_limit(functions: Functions) -> None:
    for runner, limit in (
        (functions("span", limit=2), 2),
        (functions("span", limit=5, ReservedConcurrentExecutions=1), 1),
    ):
        spans = [f.result().result for f in [runner.invoke({}) for _ in range(6)]]
        for _, start, _ in spans:
            assert sum(s <= start < e for _, s, e in spans) <= limit


def test_it_is_killed_at_the_timeout_with_its_children(
    functions: Functions, tmp_path: Path
) -> None:
    slow = functions("slow", Timeout=1)
    invocation = functions.settled(slow, {"file": str(tmp_path / "pids")})
    message = f"RequestId: {invocation.request_id} Error: Task timed out after 1.00 seconds"
    assert invocation.error == {"errorType": "Sandbox.Timedout", "errorMessage": message}
    assert 1000 <= invocation.duration_ms < 8000
    pid, child = json.loads((tmp_path / "pids").read_text())
    assert not alive(pid)
    assert not alive(child)
    assert slow.sandboxes == []


@pytest.mark.parametrize(
    ("event", "end"),
    [
        ({"exit": 3}, "Runtime exited with error: exit status 3"),
        ({"signal": signal.SIGKILL}, "Runtime exited with error: signal: killed"),
        ({"exit": 4, "fork": True}, "Runtime exited with error: exit status 4"),
    ],
)
def test_after_a_crash_it_is_replaced(functions: Functions, event: Any, end: str) -> None:
    crash = functions("crash")
    invocation = functions.settled(crash, event)
    assert invocation.error is not None
    assert invocation.error["errorType"] == "Runtime.ExitError"
    assert invocation.error["errorMessage"].endswith(end)
    again = functions.settled(crash, {})
    assert (again.error, again.cold) == (None, True)


def test_it_has_no_shared_memory(functions: Functions) -> None:
    """As Lambda has no /dev/shm: no pool of processes, no queue between them; pipes work."""
    refused = ["[Errno 38] Function not implemented"] * 4
    assert functions("share").invoke({}).result().result == [*refused, 7, 1]


def test_an_error_is_no_crash(functions: Functions) -> None:
    crash = functions("crash")
    pid = functions.settled(crash, {}).result
    error = functions.settled(crash, {"raise": True}).error
    assert error is not None
    assert (error["errorType"], error["errorMessage"]) == ("LookupError", "not here")
    assert functions.settled(crash, {}).result == pid


def test_output_is_shown_with_the_function_name(functions: Functions) -> None:
    functions.settled(functions("talk"), {})
    until(lambda: len(functions.log) == 3)
    assert sorted(functions.log) == ["Fn: from a child", "Fn: to stderr", "Fn: to stdout"]


@pytest.mark.parametrize("what", ["thread", "process"])
def test_what_is_left_over_is_frozen_and_thawed(
    functions: Functions, tmp_path: Path, what: str
) -> None:
    leak, file = functions("leak"), tmp_path / "ticks"
    functions.settled(leak, {"leak": what, "file": str(file)})

    def size() -> int:
        # Whether a child got to its first tick before the freeze is up to the scheduler.
        return file.stat().st_size if file.exists() else 0

    stands = size()
    time.sleep(0.3)
    assert size() == stands
    until(lambda: functions.settled(leak, {"leak": "ended"}) and size() > stands)


def test_a_leaked_thread_is_named_once(functions: Functions, tmp_path: Path) -> None:
    leak = functions("leak")
    functions.settled(leak, {})
    invocation = functions.settled(leak, {"leak": "thread", "file": str(tmp_path / "ticks")})
    assert len(invocation.leaks) == 1
    assert invocation.leaks[0].startswith("thread 'mail-the-customer' at app.py:")
    assert functions.settled(leak, {}).leaks == []


def test_a_thread_with_the_number_of_an_ended_one_is_named(functions: Functions) -> None:
    swap = functions("swap")
    for _ in range(20):  # the first one's number may be free only a moment after its end
        first, second = functions.settled(swap, "first"), functions.settled(swap, "second")
        if first.result == second.result:
            break
    assert first.result == second.result, "the system never used a number again"
    assert [leak.split(" at ")[0] for leak in second.leaks] == ["thread 'second'"]


def test_a_leaked_process_is_named_once(functions: Functions, tmp_path: Path) -> None:
    leak = functions("leak")
    invocation = functions.settled(leak, {"leak": "process", "file": str(tmp_path / "ticks")})
    assert len(invocation.leaks) == 1
    assert invocation.leaks[0].startswith("process ")
    assert "import time" in invocation.leaks[0]
    assert functions.settled(leak, {}).leaks == []


def test_a_daemonised_process_is_named_and_killed(functions: Functions) -> None:
    from local.processes import descendants

    leak = functions("leak")
    assert functions.settled(leak, {"leak": "daemon"}).leaks == ["process 'sleep 77'"]
    (pid,) = descendants(leak.sandboxes[0].pid)
    leak.close()
    assert not alive(pid)


def test_what_has_ended_or_is_from_init_is_no_leak(functions: Functions) -> None:
    leak = functions("leak")
    assert functions.settled(leak, {"leak": "ended"}).leaks == []
    assert functions.settled(leak, {"leak": "ended"}).leaks == []


@pytest.mark.parametrize("what", ["thread", "process"])
def test_reclaim_loses_left_over_work(functions: Functions, tmp_path: Path, what: str) -> None:
    leak, file = functions("leak", reclaim=True), tmp_path / "ticks"
    first = functions.settled(leak, {"leak": what, "file": str(file)})
    stands = file.stat().st_size if file.exists() else 0
    second = functions.settled(leak, {})
    assert len(first.leaks) == 1
    assert second.cold
    assert not alive(first.result)
    assert (file.stat().st_size if file.exists() else 0) == stands


def test_changed_code_runs_at_the_next_invocation(functions: Functions) -> None:
    echo = functions("echo")
    source = echo.function.code / "app.py"
    functions.settled(echo)
    for answer in (111, 222):  # within a second and of one size: no bytecode may stand in
        source.write_text(f"def echo(event, context):\n    return {answer}\n", encoding="utf-8")
        assert functions.settled(echo).result == answer
    assert len(echo.sandboxes) == 1


def test_a_syntax_error_is_shown_and_not_fatal(functions: Functions) -> None:
    echo = functions("echo")
    source = echo.function.code / "app.py"
    functions.settled(echo)
    source.write_text("def echo(:\n", encoding="utf-8")
    error = functions.settled(echo).error
    assert error is not None
    assert error["errorType"] == "Runtime.UserCodeSyntaxError"
    assert any("Fn does not start: Runtime.UserCodeSyntaxError" in line for line in functions.log)
    source.write_text("def echo(event, context):\n    return 'mended'\n", encoding="utf-8")
    assert functions.settled(echo).result == "mended"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nothing_of_this_name", "Runtime.ImportModuleError: Unable to import module 'app'"),
        ("import os\nos.environ['TABLE']", r"KeyError: 'TABLE' \(app.py:2\)"),
        ("import os\nos._exit(9)", "Runtime.ExitError: Runtime exited with error: exit status 9"),
        ("other = 1", "Runtime.HandlerNotFound: Handler 'echo' missing on module 'app'"),
    ],
)
def test_a_function_that_does_not_start_is_one_line(
    functions: Functions, code: str, message: str
) -> None:
    echo = functions("echo")
    (echo.function.code / "app.py").write_text(code, encoding="utf-8")
    with pytest.raises(InitError, match=f"^Fn does not start: {message}") as failed:
        echo.start()
    assert "\n" not in str(failed.value)


def test_closing_ends_sandboxes_and_what_they_started(functions: Functions, tmp_path: Path) -> None:
    leak, slow = functions("leak"), functions("slow", Timeout=30)
    child = functions.settled(leak, {"leak": "process", "file": str(tmp_path / "ticks")}).result
    slow.invoke({"file": str(tmp_path / "pids")})
    pids = until(lambda: (tmp_path / "pids").exists() and (tmp_path / "pids").read_text())
    leak.close()
    slow.close()
    assert not any(alive(pid) for pid in [child, *json.loads(pids)])


def test_a_busy_sandbox_can_be_killed_for_a_test(functions: Functions, tmp_path: Path) -> None:
    slow = functions("slow", Timeout=30)
    future = slow.invoke({"file": str(tmp_path / "pids")})
    until(lambda: (tmp_path / "pids").exists())
    assert slow.kill_busy() == 1
    error = future.result(10).error
    assert error is not None
    assert error["errorMessage"].endswith("signal: killed")
