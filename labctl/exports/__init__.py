"""Projections of a campaign into formats of other tools: each can be thrown away and made again."""
