"""Start the command `wanbench`: Ctrl-C ends it with one line also while it is still loading, or is already ending."""

import signal
import sys


def main() -> int:
    """Load and run the command; return its exit status."""
    try:
        from .cli import main as command

        return command()
    except KeyboardInterrupt:
        print("wanbench: interrupted before it had started.", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # otherwise the interpreter, as it ends, prints a traceback


if __name__ == "__main__":
    sys.exit(main())
