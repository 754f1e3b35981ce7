"""Every message between processes, one frozen dataclass each: its kind, who sends it to whom, its fields with types.

May not: know what a node does with a message, or cost a process that only measures more than a look at each field.
"""
