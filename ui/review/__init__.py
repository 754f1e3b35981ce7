"""The assessor's screens: the review of a campaign, and a second assessor's look at its videos."""
