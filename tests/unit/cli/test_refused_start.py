"""What a console says of a run that ended at once: the last line of its log, in whatever letters."""

from __future__ import annotations

from pathlib import Path

from labctl.cli.console import said_at_the_end


def test_it_is_the_last_line_of_this_run_though_earlier_ones_held_other_letters(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("Zürich: Prüfung → 5 °C\n" * 40, encoding="utf-8")
    started = log.stat().st_size
    with log.open("a", encoding="utf-8") as out:
        out.write("a warning\nerror: the cell’s camera is gone\n")
    assert said_at_the_end(log, started) == "the cell’s camera is gone"
    assert said_at_the_end(log, log.stat().st_size) == ""


def test_bytes_that_are_no_text_do_not_hide_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(b"\xff\xfe cut in a letter: \xc3\nerror: no room\n")
    assert said_at_the_end(log, 0) == "no room"
