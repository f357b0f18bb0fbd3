"""Starts the plug-in host from the folder that the conductor has put it into."""

from magnum_plugin_host import zygote

zygote.main()
