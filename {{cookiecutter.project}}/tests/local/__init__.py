"""What needs the laptop stack in hand: killed workers, timeouts, dead letters."""
