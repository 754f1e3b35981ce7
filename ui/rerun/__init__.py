"""Episodes in Rerun: entities, blueprint, viewer process."""
