"""What the register does, one module for each kind of change; every edge calls these."""
