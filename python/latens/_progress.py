"""Progress bars."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

#: Receives facts about the progress of `fit`: phase, done, total, unit, iteration, metrics.
Callback = Callable[[dict[str, Any]], Any]


class Bar:
    """Shows progress with tqdm where it is installed, otherwise one line every few seconds."""

    def __init__(self, then: Callback | None) -> None:
        self._then = then
        self._phase = ""
        self._bar: Any = None
        self._last_line = time.monotonic()
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm: Any = tqdm

    def __call__(self, facts: dict[str, Any]) -> None:
        if self._tqdm is None:
            self._line(facts)
        else:
            self._move(facts)
        if self._then is not None:
            self._then(facts)

    def _move(self, facts: dict[str, Any]) -> None:
        if self._bar is None or facts["phase"] != self._phase:
            self.close()
            self._phase = facts["phase"]
            self._bar = self._tqdm(
                total=facts["total"], initial=facts["done"], desc=self._phase, unit=" " + facts["unit"]
            )
        self._bar.update(facts["done"] - self._bar.n)
        if facts["metrics"]:
            self._bar.set_postfix({name: f"{value:.5g}" for name, value in facts["metrics"].items()})

    def _line(self, facts: dict[str, Any]) -> None:
        now = time.monotonic()
        if now - self._last_line < 5:
            return
        self._last_line = now
        total = "" if facts["total"] is None else f" of {facts['total']}"
        metrics = "".join(f", {name} {value:.5g}" for name, value in facts["metrics"].items())
        print(f"{facts['phase']}: {facts['done']}{total} {facts['unit']}{metrics}", file=sys.stderr)

    def close(self) -> None:
        """Ends the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
