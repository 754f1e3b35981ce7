"""Each arm of a publication has its card in a file of its own, whatever it is called."""

from __future__ import annotations

from labctl.publishing.cards import _files


def test_arms_whose_names_differ_in_what_no_file_is_called_by_have_files_of_their_own() -> None:
    assert _files(["pi-0", "pi 0", "pi/0", "..", "π"]) == {
        "pi-0": "pi-0",
        "pi 0": "pi-0-2",
        "pi/0": "pi-0-3",
        "..": "arm",
        "π": "arm-2",
    }
