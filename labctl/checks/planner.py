"""A planner or vision-language model behind an OpenAI-compatible endpoint: shown one picture, asked one question, it
answers with a letter.

May not: judge an episode (its word is compared with the record, never put into it), follow a redirect, or send anything
that it was not given.
"""

from __future__ import annotations

import base64
import io
import json
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.parse import urlsplit

import numpy as np

from labctl.checks.questions import Question
from labctl.errors import DeviceLost, InputError
from labctl.requesting import answer_of

ANSWER_S = 60.0
LARGEST = 1 << 20  # bytes of an answer, of which one text is read
TOKENS = 16
# No article stands before these: "A because" is a letter, "A robot" is none.
BEHIND_A = (
    "and|applies|as|at|because|by|but|describes|fits|for|from|in|is|it|its|looks|matches|no|none|nor|not|nothing"
    "|of|on|or|seems|shows|since|that|the|there|they|this|to|was|were|with|would"
)
LETTER = re.compile(
    r"(?<!\b[Nn]ot )(?<!\b[Nn]or )(?<!\b[Nn]either )(?<!\bthan )"
    rf"\b(?:[B-HJ-Z]|A(?!['’][a-z]| (?!(?:{BEHIND_A})\b)[a-z])|I(?!['’][a-z]| (?!(?:because|is|since)\b)[a-z]))\b"
)
PATH = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Planner:
    """model: as the endpoint knows it; url: the API's root, such as http://127.0.0.1:8000/v1; key: sent as a bearer
    token, shown nowhere.
    """

    model: str
    url: str
    key: str = field(default="", repr=False)

    def answer(self, question: Question, *images: np.ndarray) -> int | None:
        """The place of the option it chose, None for an answer that names none. images: (height, width, 3) uint8 RGB.

        Raises DeviceLost for an endpoint that does not answer, or not as such endpoints do.
        """
        return self.choose(question.prompt(), len(question.options), images)

    def choose(self, prompt: str, options: int, images: Sequence[np.ndarray]) -> int | None:
        """As `answer`, of a question that is put in words already, with so many options."""
        text = self._ask(prompt, images)
        letter = letter_of(text)
        chosen = ord(letter) - ord("A") if letter else options
        return chosen if chosen < options else None

    def _ask(self, text: str, images: Sequence[np.ndarray]) -> str:
        shown = [{"type": "image_url", "image_url": {"url": _picture(image)}} for image in images]
        parts = [{"type": "text", "text": text}, *shown]
        question = {
            "model": self.model,
            "messages": [{"role": "user", "content": parts}],
            "temperature": 0,
            "max_tokens": TOKENS,
        }
        request = urllib.request.Request(  # its address is http or https: `planner_of`
            self.url.rstrip("/") + PATH,
            json.dumps(question).encode(),
            {"Content-Type": "application/json", **({"Authorization": f"Bearer {self.key}"} if self.key else {})},
        )
        try:
            with answer_of(request, ANSWER_S) as answer:
                return str(json.loads(answer.read(LARGEST))["choices"][0]["message"]["content"])
        except (OSError, HTTPException) as error:
            refused = isinstance(error, urllib.error.HTTPError)
            why = f"answered {error.code}" if refused else f"does not answer: {error}"
            raise DeviceLost(f"model {self.model} at {self.url} {why}; is it up, with {PATH}?") from error
        except (ValueError, KeyError, IndexError, TypeError, RecursionError, OverflowError) as error:
            raise DeviceLost(
                f"model {self.model} at {self.url} did not answer as an OpenAI-compatible endpoint does "
                "(no text at choices[0].message.content)"
            ) from error


def letter_of(text: str) -> str | None:
    """The first letter that an answer names and does not deny; None for one that names none."""
    named = LETTER.search(text)
    return named[0] if named else None


def planner_of(text: str) -> Planner:
    """MODEL=URL as typed. Raises InputError."""
    model, _, url = text.partition("=")
    if not model.strip() or not re.match(r"^https?://[^\s/]+", url) or not _splits(url):
        raise InputError(f"--planner {text!r} must be MODEL=URL, such as qwen2.5-vl=http://127.0.0.1:8000/v1")
    return Planner(model.strip(), url.strip())


def _splits(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:  # a [ without its ]
        return False


def _picture(image: np.ndarray) -> str:
    from PIL import Image

    into = io.BytesIO()
    Image.fromarray(image).save(into, "PNG")
    return "data:image/png;base64," + base64.b64encode(into.getvalue()).decode()
