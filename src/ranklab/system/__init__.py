"""What this machine is and has: memory, ports, GPUs, leftovers of a crash; and what may not outlive its owner."""
