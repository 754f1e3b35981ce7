"""Good inputs spoilt, by a seeded draw: bytes and bits, pieces moved and repeated, numbers and words nobody expects.

May not: know what reads them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

MOST_BYTES = 200_000
NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")
WORDS = (
    *(b"", b"0", b"-1", b"-0.0", b"1e999", b"-1e999", b"NaN", b"Infinity", b"nan", b"inf", b"2147483648", b"1e-320"),
    *(b"9223372036854775808", b"-9223372036854775809", b"1" * 400, b"0x10", b"1_000", b"true", b"null", b"[]", b"{}"),
    *(b'""', b"'", b'"', b'"""', b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\n", b"\r", b"\t", b",", b";", b"="),
    *("é".encode(), "\u202e".encode(), "\ud7ff".encode(), b"\xed\xa0\x80", b"../..", b"/dev/zero", b"%s%n", b"${x}"),
    *(b"1" * 5000, "\u00b2".encode(), "\u0663".encode(), b"\\ud800", b'"\\u0000"', b"0.1e-400", b"-", b"1" * 19),
    *(b"<script>", b"__class__", b"[" * 3000, b"{" * 3000, b"(" * 200, b'{"a":' * 500, b"a" * 5000, b"# \n" * 500),
)
"""What takes the place of a piece: extremes, ends of types, quotes, odd text, depth and length."""


def mutated(draw: random.Random, samples: Sequence[bytes]) -> bytes:
    """A sample with one to six changes."""
    data = draw.choice(samples)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        data = draw.choice(CHANGES)(draw, data, samples)
    return data[:MOST_BYTES]


def _cut(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    return data[: draw.randint(0, len(data))]


def _bit(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    if not data:
        return b"\x00"
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]


def _byte(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    at = draw.randint(0, len(data))
    return data[:at] + bytes([draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))]) + data[at + 1 :]


def _word(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    begin = draw.randint(0, len(data))
    return data[:begin] + draw.choice(WORDS) + data[begin + draw.choice((0, 0, 1, 4, 16)) :]


def _number(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    found = list(NUMBER.finditer(data))
    if not found:
        return _word(draw, data, samples)
    one = draw.choice(found)
    return data[: one.start()] + draw.choice(WORDS) + data[one.end() :]


def _drop(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    begin = draw.randint(0, len(data))
    return data[:begin] + data[begin + draw.choice((1, 2, 8, 64, 512)) :]


def _again(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    begin = draw.randint(0, len(data))
    piece = data[begin : begin + draw.choice((1, 8, 64, 512))]
    at = draw.randint(0, len(data))
    return data[:at] + piece * draw.choice((1, 1, 2, 50)) + data[at:]


def _lines(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    a, b = draw.randrange(len(lines)), draw.randrange(len(lines))
    match draw.randrange(3):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            lines.insert(a, lines[b])
        case _:
            del lines[a]
    return b"\n".join(lines)


def _cell(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    cells = data.split(b",")
    cells[draw.randrange(len(cells))] = draw.choice(WORDS)
    return b",".join(cells)


def _value(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    """The value of a line of TOML, or what stands behind a colon."""
    sign = draw.choice((b"=", b":"))
    parts = data.split(sign)
    if len(parts) < 2:
        return _word(draw, data, samples)
    at = draw.randrange(1, len(parts))
    rest = parts[at].partition(b"\n")
    parts[at] = b" " + draw.choice(WORDS) + b"".join(rest[1:])
    return sign.join(parts)


def _spliced(draw: random.Random, data: bytes, samples: Sequence[bytes]) -> bytes:
    other = draw.choice(samples)
    return data[: draw.randint(0, len(data))] + other[draw.randint(0, len(other)) :]


CHANGES: Sequence[Callable[[random.Random, bytes, Sequence[bytes]], bytes]] = (
    *(_cut, _bit, _byte, _byte, _word, _word, _number, _number, _number),
    *(_drop, _again, _lines, _cell, _value, _value, _spliced),
)
