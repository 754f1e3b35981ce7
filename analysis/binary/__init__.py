"""Success counts: intervals of one rate, comparison of two, pooling over conditions."""
