"""The same questions to each service and to the fake that stands in for it in other rooms' tests.

A fake that answers otherwise than the service makes every test that uses it worthless.
"""
