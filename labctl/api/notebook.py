"""HTML by which a notebook shows a result.

May not: compute, or load anything: no script, no style sheet, no picture from elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jinja2

_PAGE = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(
    """<div class="labctl"><p>{{ head }}</p>
{% for table in tables %}
<table><thead><tr>{% for name in table.names %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}
<tr>{% for value in row %}<td>{{ value }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table>
{% endfor %}
{% if notes %}
<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>
{% endif %}
</div>"""
)


class Shown(NamedTuple):
    """A table to show: names of columns, and rows of texts."""

    names: Sequence[str]
    rows: Sequence[Sequence[str]]


def page(head: str, *tables: Shown, notes: Sequence[str] = ()) -> str:
    """A line, tables under it and notes at the end; whatever a name holds is text."""
    return _PAGE.render(head=head, tables=[table for table in tables if table.rows], notes=notes)
