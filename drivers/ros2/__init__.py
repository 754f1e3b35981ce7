"""A robot and cameras behind ROS 2, spoken over DDS itself: no ROS has to be installed on the cell's computer."""
