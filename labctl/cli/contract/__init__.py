"""What --json prints, as a contract: every document's name, its shape as a type, and its schema made of that type."""
