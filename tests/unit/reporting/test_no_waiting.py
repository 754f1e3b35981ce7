"""A report waits for no library that it has no use for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TABLE = Path(__file__).parents[1] / "analysis" / "report_table.csv"


def test_a_report_does_not_wait_for_all_of_scipy_s_distributions(tmp_path: Path) -> None:
    """scipy.stats takes half a second of a core to import, and what a report asks of it is in scipy.special to the
    bit (issue 18.28).
    """
    script = (
        "import sys; from labctl.cli import call; from labctl.analysis.report import figures; "
        "figures.make = lambda name, title, size, draw, csv: figures.Figure(name, title, '<svg ', b'', csv); "
        f"code = call(['report', {str(TABLE)!r}, '--out', {str(tmp_path / 'out')!r}, '--boot', '19', '--perm', '19']); "
        "print(code, {'scipy.stats', 'scipy.optimize', 'sqlalchemy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "0 set()", done.stderr
