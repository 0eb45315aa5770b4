"""User-Agent values of current browsers, for rotation.

Written down in August 2026. They are brought up to date with every release of the package,
and never at run time: a list that is fetched stops programs when its source is down.
Desktop systems only, so that one address does not seem to hold a phone in every hand.
"""

_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0.0.0 Safari/537.36"
_SAFARI = "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.4 Safari/605.1.15"

BROWSERS = (
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME}",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:153.0) Gecko/20100101 Firefox/153.0",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_CHROME}",
    f"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) {_SAFARI}",
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) {_CHROME} Edg/153.0.0.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:153.0) Gecko/20100101 Firefox/153.0",
    f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME}",
    "Mozilla/5.0 (X11; Linux x86_64; rv:153.0) Gecko/20100101 Firefox/153.0",
)
