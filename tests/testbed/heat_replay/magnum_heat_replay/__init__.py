"""The Heat driver of Magnum 22 in worlds that a test describes.

A package of its own with an entry point, so that it is adopted and called like any other: the driver, its template
definitions, the poller and the objects are Magnum's. Doubles stand for every client of `OpenStackClients`, as in the
recordings (tests/fixtures/heat): what the driver asks of a cloud is written down as it asks, before any client library
forms a request of it. The libraries themselves are in the tests with a real Heat.
"""
