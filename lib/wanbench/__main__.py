"""Start the command `wanbench`: Ctrl-C ends it with one line also while it is still loading, or is already ending."""


def main() -> int:
    """Load and run the command; return its exit status."""
    try:  # nothing is imported before this line: Ctrl-C during an import prints a traceback
        from .cli import main as command

        return command()
    except KeyboardInterrupt:
        import sys

        print("wanbench: interrupted before it had started.", file=sys.stderr)
        return 130
    finally:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # otherwise the interpreter, as it ends, prints a traceback


if __name__ == "__main__":
    raise SystemExit(main())
