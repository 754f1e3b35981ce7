"""How far `labctl verify` is: every look at a recording is counted, and a log has a line a tenth of the way."""

import sys

from support.runs.campaigns import recorded_with_cameras

from labctl.cli.verify import _headway
from labctl.store.verifying.verify import verify_campaign


def test_traces_and_videos_of_each_recording_are_counted_up_to_the_last(recordings):
    said: list[str] = []
    verified = verify_campaign(recordings.of(recorded_with_cameras), say=said.append)
    looks = 2 * verified.counts.recordings
    assert [line.split()[0] for line in said] == [f"{number}/{looks}" for number in range(1, looks + 1)] != []


def test_a_log_gets_ten_lines_on_standard_error_and_none_of_a_short_record(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    for of in (96, 4):
        with _headway("first") as say:
            for number in range(1, of + 1):
                say(f"{number}/{of} e-{number}")
    out, err = capsys.readouterr()
    assert out == "" and len(err.splitlines()) == 10
    assert err.splitlines()[-1] == "first: 96 of 96 looked at (traces and videos)"
