"""Log records as lines that the conductor can read: one line each, with the level in front.

The level is the number of syslog in angle brackets, as sd-daemon(3) has it; a line without one was written by
something else than a logger.
"""

import logging

SYSLOG = {
    logging.CRITICAL: 2,
    logging.ERROR: 3,
    logging.WARNING: 4,
    logging.INFO: 6,
    logging.DEBUG: 7,
}


class OneLine(logging.Formatter):
    """Puts the level before each line of what another formatter makes."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self._inner = inner

    def format(self, record: logging.LogRecord) -> str:
        level = next((number for lowest, number in SYSLOG.items() if record.levelno >= lowest), 7)
        lines = self._inner.format(record).splitlines() or [""]
        return "\n".join(f"<{level}>{line}" for line in lines)


def install() -> None:
    """Wraps the formatters of the root logger's handlers."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(OneLine(handler.formatter or logging.Formatter()))
