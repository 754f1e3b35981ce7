"""Who people are: personal codes that tell two apart, who spoke from which console, and what they practised."""
