"""The program `latens`, as `pip install` puts it on the path and as `python -m latens`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the program with the arguments of this process."""
    _take_back_what_python_changed()
    from latens._latens import run_program

    # Not `sys.exit`: the program has flushed its output, and its threads need not wait for the end of the interpreter.
    os._exit(run_program(["latens", *sys.argv[1:]]))


def _take_back_what_python_changed() -> None:
    # The program wants the signals as the system has them; those that a parent ignores, e.g., `nohup`, stay ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGXFSZ"):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    # A file must not get the number of a closed standard stream.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


if __name__ == "__main__":
    main()
