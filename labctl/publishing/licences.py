"""The licences that a publication can name, by their SPDX identifiers.

May not: say what a licence means.
"""

from __future__ import annotations

from pathlib import Path

from labctl.errors import InputError
from labctl.publishing.manifest import Licence
from labctl.store.lab_folder import read_text

LICENCES = {
    "Apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "BSD-3-Clause": "https://opensource.org/license/bsd-3-clause",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC-BY-SA-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CDLA-Permissive-2.0": "https://cdla.dev/permissive-2-0/",
    "MIT": "https://opensource.org/license/mit",
    "ODC-By-1.0": "https://opendatacommons.org/licenses/by/1-0/",
    "ODbL-1.0": "https://opendatacommons.org/licenses/odbl/1-0/",
    "PDDL-1.0": "https://opendatacommons.org/licenses/pddl/1-0/",
}


def licence_of(named: str) -> tuple[Licence, str]:
    """A licence by its identifier, or the text of a file, and what LICENSE.txt says. Raises InputError."""
    if named in LICENCES:
        url = LICENCES[named]
        return Licence(named, url), f"SPDX-License-Identifier: {named}\n\nThe data in this folder: {url}\n"
    if not Path(named).is_file():
        known = ", ".join(LICENCES)
        raise InputError(f"--licence {named}: no licence known here and no file; name one of {known}, or give a file")
    text = read_text(Path(named))
    if not text.strip():
        raise InputError(f"--licence {named}: the file is empty; it holds the licence's text")
    return Licence("other", ""), text
