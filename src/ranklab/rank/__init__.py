"""What runs inside a rank: its engine, and what answers for it while it is busy, stuck or dead."""
