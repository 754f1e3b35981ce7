"""Statistics of paired blocks for any task: monitoring, preference, sites, axes, tags, retention, stress, agreement."""
