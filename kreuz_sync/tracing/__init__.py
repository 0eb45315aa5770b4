"""Layer 1: what a call did and how long it took, told to OpenTelemetry.

`setting.py` is what a user configures. `layer.py` has the two adapters, the outermost layer and the one
next to the wire; `call.py` has the span of a call and `attempt.py` that of an attempt. What they
say is worked out in `attributes.py`, and measured with the instruments of `meters.py`. `otel.py`
is the only file that imports opentelemetry, and does so when somebody traces.
"""

from kreuz_sync.carrying import carried

from .setting import Tracing

__all__ = ["Tracing", "carried"]
