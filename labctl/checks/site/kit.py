"""The kit by which a second site is held against the first: anchor objects, the band of its human reference, what an
assessor's labels of common videos must reach. A strict TOML file; the first site writes it before anybody measures.

May not: open files, or judge: `judging` does.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from labctl.config.cell_schema import refuse_repeats
from labctl.config.toml_text import Document, Table, parse
from labctl.config.values import Positive, Text

Share = Annotated[float, Field(gt=0, lt=1)]


class Kit(Table):
    """[kit]: name, and from which campaign of the first site the reference is."""

    name: Text
    first_site: Text


class AnchorObject(Table):
    """[[object]]: one of the set that every site has. id: as it is written on it; name: of the object in protocols;
    length_m, width_m, height_m, mass_kg: as the first site measured it; picture: file beside the kit that shows it, and
    the name that a site's own picture of it has.
    """

    id: Text
    name: Text
    length_m: Positive
    width_m: Positive
    height_m: Positive
    mass_kg: Positive
    picture: Text


class Tolerance(Table):
    """[tolerance]: by how much a site's measurement may differ, shares of the first site's."""

    size: Share = 0.03
    mass: Share = 0.05


class Reference(Table):
    """[reference]: the band that a site's person has to be shown to lie in: rmst_ratio, above 1, the ratio of RMSTs up
    to tau_s either way; arm: whose rows of both tables are the person's.
    """

    rmst_ratio: Annotated[float, Field(gt=1)] = 1.5
    tau_s: Positive
    arm: Text = "human"


class Assessors(Table):
    """[assessors]: least_kappa: what the lower end of kappa's 95 % interval has to reach against the reference labels,
    of least_episodes common episodes or more.
    """

    least_kappa: Share = 0.6
    least_episodes: Annotated[int, Field(ge=10)] = 40


class SiteKit(Document):
    """The whole file."""

    kit: Kit
    object: Annotated[list[AnchorObject], Field(min_length=1)]
    tolerance: Tolerance = Tolerance()
    reference: Reference
    assessors: Assessors = Assessors()


def parse_kit(text: str, where: str) -> SiteKit:
    """The kit of a file's text. Raises InputError with file and line."""
    found = parse(SiteKit, text, where)
    refuse_repeats(found, ("object",), [one.id for one in found.object])
    return found


TEMPLATE = """\
# A kit for a second site. The first site fills it in and freezes it: its digest stands beside every result.
[kit]
name = "two-totes-1"
first_site = "north"                  # and the campaign whose human reference is meant

# One table for each object that every site has: same maker, same article number. Weigh and measure each.
[[object]]
id = "S1"                             # as it is written on the object
name = "wooden spoon"                 # as protocols call it
length_m = 0.250
width_m = 0.045
height_m = 0.015
mass_kg = 0.031
picture = "S1.jpg"                    # beside this file, and of the same name in a site's folder of measurements

[tolerance]
size = 0.03                           # shares of the above
mass = 0.05

[reference]
rmst_ratio = 1.5                      # the person of the site is shown to lie within this band, by two one-sided tests
tau_s = 240.0
arm = "human"

[assessors]
least_kappa = 0.6                     # what the lower end of the 95 % interval has to reach
least_episodes = 40
"""
