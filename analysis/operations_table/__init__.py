"""What is said of a table of operations: arms, pairs, verdicts and cautions, as `labctl analyze` prints them."""
