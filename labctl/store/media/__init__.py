"""Videos in the lab's media store: uploaded once they are sealed, verified, and fetched back where they are wanted."""
