"""labctl for notebooks and scripts: tables, campaigns and their statistics as typed values. What is listed in
`__all__` is meant to keep its names and meanings.

May not: compute a statistic (`labctl.analysis` does), write anything, or show what a sealed campaign hides.

    from labctl import api

    table = api.load("operations.csv")             # or api.from_frame(df), or api.campaign("c").operations()
    result = table.analyze(reference="human")
    result.arm("pi0").hrt                          # a float; result.arm("pi0").hrt_ci is an Interval
    result.to_frame("pairs")                       # pandas or polars, whichever is installed
    result.plot()                                  # matplotlib axes

Times are seconds, shares are fractions, infinity is `math.inf`, and None is what a table has no answer to.
"""

from __future__ import annotations

from labctl.api.campaign import Campaign, Episode, Frame, Trace, campaign
from labctl.api.episodes_result import ArmOfEpisodes, EpisodesAnalysis, PairOfEpisodes
from labctl.api.operations_result import Analysis, Arm, Cell, Curve, Pair
from labctl.api.planning import Power, PowerAt
from labctl.api.tables import EpisodesTable, OperationsTable, from_frame, load
from labctl.api.values import Interval

__all__ = [
    "Analysis",
    "Arm",
    "ArmOfEpisodes",
    "Campaign",
    "Cell",
    "Curve",
    "Episode",
    "EpisodesAnalysis",
    "EpisodesTable",
    "Frame",
    "Interval",
    "OperationsTable",
    "Pair",
    "PairOfEpisodes",
    "Power",
    "PowerAt",
    "Trace",
    "campaign",
    "from_frame",
    "load",
]
