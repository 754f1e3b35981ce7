"""What recorded streams tell: how clocks ran, values at other instants, ends of holds. As pure as the rest."""
