"""The error for a question that makes no sense: counts that cannot be, rates out of range, sizes too small.

May not: be raised for a file's contents (`TableError` names a line), or for a mistake in labctl.
"""

from __future__ import annotations


class QuestionError(ValueError):
    """What was asked cannot be; `str(error)` is one line: what was found, what is allowed, what to do."""
