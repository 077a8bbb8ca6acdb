"""What happens when ranks stop: who waits where, why, and how the others are freed."""
