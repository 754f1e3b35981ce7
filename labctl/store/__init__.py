"""What is kept on disk: journal, traces, video, seal and locks of a campaign, and the lab folder around it."""
