"""The plug-in host: runs drivers with the entry point ``magnum.drivers`` unchanged, without a database.

One *zygote* imports the driver packages of an environment. For each connection of the conductor it forks a *worker*,
which makes one call, or several looks one after the other, and a *guard*, which ends the worker with everything that
it has started when the conductor goes away, stops giving signs of life, or closes the connection.

==================  ===================================================================================
module              topic
==================  ===================================================================================
``zygote``          start, the listening socket, a fork per connection
``worker``          what a forked process does before its first call, and the calls of one connection
``guard``           the end of a worker
``channel``         messages: lines of JSON, requests for objects and their replies
``library``         Magnum's library without database and broker, set up in the order that it needs
``entry_points``    the drivers of the environment, and what can be learned of them without a cluster
``calls``           a method of a driver, called as Magnum's conductor calls it
``remote_objects``  Magnum's objects, whose methods the conductor carries out
``errors``          an exception as transient, permanent, not supported or cancelled
==================  ===================================================================================

Guarantees: at most one call at a time in a process; nothing that a call has left in memory is seen by another one; no
process outlives the connection of its call. Not guaranteed: that a driver's process which has left its process group
ends as well.
"""

PROTOCOL = 1
"""The version of the messages. The conductor refuses another one: it brings the host itself."""
