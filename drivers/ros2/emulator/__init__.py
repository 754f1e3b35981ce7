"""An emulated robot behind ROS 2, on loopback: DDS is real, ROS and the robot are not. It proves
nothing about hardware.
"""
