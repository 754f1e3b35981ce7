"""What the words of an episodes report mean, for its last section, and its foot.

May not: hold a number of a table or a claim about an arm.
"""

FOOTER = (
    "Written by labctl from an episodes table and the analysis result in report.json; every figure is in figures/ with "
    "the numbers it draws."
)
NOTES: tuple[tuple[str, str], ...] = (
    (
        "Episode, block, set",
        "An episode is one attempt of an arm at a task. A block is one condition attempted once by each arm; only "
        "episodes of one block are compared. Blocks that belong together, such as a base and what perturbs it, make a "
        "set; blocks, or sets where there are any, are the independent units of intervals and tests. Friedman’s, "
        "Cochran’s and McNemar’s tests and the trend over blocks go by blocks.",
    ),
    (
        "Success and score",
        "Success is all of the task, yes or no. A score is between 0 and 1: points of the stages reached over those "
        "possible, a rubric’s number, or the share of items moved. Where the table has scores they are what arms are "
        "compared by, and successes stand beside them.",
    ),
    (
        "Intervals",
        "Of successes by Clopper and Pearson (1934). Of means and differences the outer ends of bootstrap-t over units "
        "and of a t interval (on the logit for means): neither alone covers everywhere. Of paired success Tango’s "
        "(1998). docs/episodes.md has how often they hold, by simulation and within real blocks.",
    ),
    (
        "Win probability",
        "How often the first arm does better than the second within a block, ties one half: P(a > b) + ½ P(tie).",
    ),
    (
        "Tests and verdicts",
        "The labels of a pair are exchanged within units; exact where that can be counted (Fisher 1935). Holm adjusts "
        "over pairs, those with the reference as one family and all others as another. An arm is called better only if "
        "the interval at Holm’s level excludes 0 and that of success does not exclude it on the other "
        "side. Not resolved means that these blocks were too few to tell, nothing more.",
    ),
    (
        "Ranks and letters",
        "A rank interval holds for all arms at once: an arm is behind all that are better and before all that are "
        "worse. Arms that share a letter were not told apart. (Mogstad et al. 2024; Piepho 2004.)",
    ),
    (
        "Time to success, RMST, HRT",
        "Kaplan–Meier of the time from go to the whole task; without success an episode is censored at its full "
        "budget, also where somebody ended it early, and where the table has no budget for it, where it ended. An arm "
        "with an episode without success, budget and time has none of these. RMST is the mean time cut at tau; HRT "
        "that of the reference over that of the arm.",
    ),
    (
        "Stages",
        "A stage counts only after those before it. Times to a stage are cumulative incidence: an episode that ended "
        "before it never reaches it (Aalen and Johansen 1978).",
    ),
    (
        "Looking after every block",
        "Betting against a difference of 0: capital that starts at 1 and reaches 1 / alpha with probability at most "
        "alpha, however often one looks (Waudby-Smith and Ramdas 2024). Of a set of blocks the mean difference counts, "
        "once its last block has run. The band holds the mean difference at "
        "every block at once. One look at the end of a planned number of blocks finds smaller differences.",
    ),
    (
        "Preference",
        "Bradley–Terry with ties and an effect of order (Davidson 1970; Davidson and Beaver 1977), intervals by "
        "drawing whole blocks.",
    ),
    (
        "Sites and evaluators",
        "Random effects of each pair’s differences by REML, evaluators nested in sites. tau2 is the variance between "
        "sites, I2 its share. A prediction is for one further site, from five on.",
    ),
    (
        "Axes, categories, compositions",
        "★-Gen codes of what a condition changes against its base. A drop is base less perturbed in the same set; "
        "seven categories are the subsets of visual, semantic and behavioural. A composition is several axes at once.",
    ),
    (
        "Tags, retention, stress",
        "Tags (EBench) are permuted over tasks. Retention is test over train, by Fieller (1954). Stress and difficulty "
        "(NEBULA) are levels of a family, each applied by itself.",
    ),
)
