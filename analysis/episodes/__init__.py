"""Statistics of whole episodes and of what surrounds them: people, sessions, failures, switches, linked campaigns."""
