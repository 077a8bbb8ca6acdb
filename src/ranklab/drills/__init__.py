"""The drill: a job that stands still, what it leaves, and the verdict on who is to blame. Runs in the notebook."""
