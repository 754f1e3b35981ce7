"""Where the time of a campaign went: people and robot by the hour, answers of policies, leases that lapsed."""
