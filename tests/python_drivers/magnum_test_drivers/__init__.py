"""Drivers with Magnum's own interface, for tests of the plug-in host. The folder lies on PYTHONPATH; nothing is installed."""
