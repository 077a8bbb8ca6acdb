"""A JupyterHub for a room: settings, the proxy, each learner's copy and limits, and the instructor's page."""
