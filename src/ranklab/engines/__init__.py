"""The processes behind the ranks: started, numbered, given an environment and a place to meet, and ended."""
