"""The statistics that say whether two arms differ, by name, in the order in which they are printed.

May not: import anything; the command line names them before numpy is loaded.
"""

STATISTICS = ("ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph")
"""Mean over objects of the largest gap of two curves, the largest gap of the mean, log RMST ratio, items per hour."""
