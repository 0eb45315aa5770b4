"""requests' own behaviour, area by area: each assertion holds for `requests.Session` and for ours.

Where ours has to differ, a test of its own says so, with `ours` in its name or its condition.
"""
