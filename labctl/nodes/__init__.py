"""Nodes: robot, camera, controller, recorder. They know mailboxes and a time handed in; no sockets, processes or
clocks.
"""
