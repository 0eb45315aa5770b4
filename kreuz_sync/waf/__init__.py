"""Noticing that an answer is a firewall's challenge or block page, not the page that was asked for.

The rules are data (`rules.json`; `rules.py` tells their shape). `match.py` holds them against an
answer, `plan.py` keeps that cheap, `setting.py` is what a session is given.
"""

from .match import WafMatch
from .setting import DEFAULT_WAF, Waf

__all__ = ["DEFAULT_WAF", "Waf", "WafMatch"]
