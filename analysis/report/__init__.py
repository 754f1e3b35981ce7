"""From a result to a page: sentences, tables, figures, HTML and Markdown."""
