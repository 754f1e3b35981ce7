"""[human]: the person as a reference: practice before it, blocks of the person alone, and one measured at another time.

May not: open files, or hold a person against a policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, StringConstraints

from labctl.config.toml_text import Document, Location, Table
from labctl.config.values import FileName, Text


class Historical(Table):
    """[human.reference]: a person measured at another time, printed beside this campaign and marked. campaign: of this
    lab, unblinded; or table: an operations table, relative to the protocol's file, of which arm is the person, rig and
    dates as nothing else says them. sha256: of its rows, where they are pinned. hrt: a marked row of HRT against it.
    """

    campaign: FileName | None = None
    table: Text | None = None
    arm: Text | None = None
    rig: Text | None = None
    dates: Text | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    hrt: bool = False


class HumanRules(Table):
    """[human]: practice before the reference. A person has reached the plateau when a line through the rates of the
    last `plateau_last` practice episodes changes by less than the share `plateau_change` of their mean. extra_blocks:
    of the person alone, at each condition, beside those with every arm.
    """

    plateau_last: Annotated[int, Field(ge=3)] = 5
    plateau_change: Annotated[float, Field(gt=0, lt=1)] = 0.1
    extra_blocks: Annotated[int, Field(ge=0)] = 0
    reference: Historical | None = None


def check_person(
    found: Document, human: HumanRules | None, kinds: Sequence[str], compares: Mapping[Location, bool]
) -> None:
    """A protocol of one arm is that of a person, and compares nothing; extra blocks are of a person beside policies; a
    historical reference says where it is from. kinds: of the arms; compares: whether the protocol has each of the keys
    that compare arms. Raises InputError.
    """
    if len(kinds) < 2 and kinds != ["human"]:
        message = f"{len(kinds)} [[arm]] found; a block needs at least 2, add another"
        raise found.refusal(("arm",), f'{message} (one alone may be of kind "human": a reference that is collected)')
    if len(kinds) == 1:
        for at, there in compares.items():
            if there:
                raise found.refusal(at, f"{at[-1]} with one arm: there is nothing to compare; take it out")
    if human is None:
        return
    if human.extra_blocks and compares["analysis", "looks"]:
        message = "extra_blocks are not there yet beside planned looks, which count blocks of every arm; drop one"
        raise found.refusal(("human", "extra_blocks"), message)
    if human.extra_blocks and ("human" not in kinds or len(kinds) == 1):
        what = "there are no other arms; raise blocks_per_condition" if len(kinds) == 1 else "no arm is a person"
        raise found.refusal(("human", "extra_blocks"), f"extra_blocks are of a person beside policies, and {what}")
    if human.reference is not None:
        _check_reference(found, human.reference)


def _check_reference(found: Document, given: Historical) -> None:
    at = ("human", "reference")
    if (given.campaign is None) == (given.table is None):
        given_keys = "neither" if given.campaign is None else "both"
        raise found.refusal(at, f"a historical reference is a campaign or a table, and {given_keys} is named; name one")
    for key in ("arm", "rig", "dates"):
        value = getattr(given, key)
        if given.table is not None and value is None:
            raise found.refusal(at, f"a table does not say its {key}; add {key} to [human.reference]")
        if given.campaign is not None and value is not None:
            raise found.refusal((*at, key), f"{key} is of a table; a campaign says it itself, take it out")
