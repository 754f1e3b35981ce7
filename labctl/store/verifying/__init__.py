"""What is looked at again before anything is shown of a campaign: journal, seal, traces, video, timestamps."""
