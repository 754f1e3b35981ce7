"""What happens in a campaign, as values and functions: events, trials, design, holds, recovery, rollout. Pure: no
files, clocks or sockets.
"""
