"""What a process of its own answers, whatever else it prints, leaves behind or ends of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from labctl.processes import json_answer


def asked(tmp_path: Path, code: str, within_s: float = 60.0) -> tuple[str, str | None]:
    (tmp_path / "answering.py").write_text(f"import os, sys\ndef main():\n    {code}\n", "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return json_answer("answering:main", '{"n": 1}', within_s, environment=environment)


def test_the_answer_is_the_last_object_however_a_library_prints_beside_it(tmp_path: Path) -> None:
    code = r"""given = sys.stdin.read(); os.write(1, b"\xff{no\n{'a': 1}\n" + given.encode() + b"\n{'b'\n")"""
    answer, ended = asked(tmp_path, code)
    assert (json.loads(answer), ended) == ({"n": 1}, None)


def test_a_process_that_answers_nothing_says_how_it_ended(tmp_path: Path) -> None:
    assert asked(tmp_path, "os._exit(3)") == ("", "exit code 3")
    assert asked(tmp_path, "os.abort()") == ("", "SIGABRT")


def test_a_process_whose_time_is_over_answers_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, "__import__('time').sleep(60)", 0.1) == ("", None)


def test_what_it_started_ends_with_it(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    reads = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    code = f"""held = os.open({str(held)!r}, os.O_WRONLY)
    from subprocess import DEVNULL, Popen
    words = [sys.executable, "-c", "import time; time.sleep(60)"]
    Popen(words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, pass_fds=[held])
    os.write(held, b"1")
    print("{{}}")"""
    assert asked(tmp_path, code) == ("{}", None)
    os.set_blocking(reads, True)
    assert (os.read(reads, 1), os.read(reads, 1)) == (b"1", b""), "nobody holds its other end any more"
    os.close(reads)


def test_one_whose_library_hangs_ends_also_where_whoever_asked_is_gone() -> None:
    code = "import threading; from labctl.processes import leave_with; "
    code += "threading.Thread(target=threading.Event().wait).start(); leave_with('{}')"
    heard, says = os.pipe()
    os.close(heard)
    with subprocess.Popen([sys.executable, "-c", code], stdout=says, stderr=subprocess.PIPE) as process:
        os.close(says)
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
