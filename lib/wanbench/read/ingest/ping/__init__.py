"""
Read ping: one row per echo.

Reads iputils, busybox, toybox, BSD and macOS, GNU inetutils, Windows in English, and fping of one host (`-C`,
`-c` or `-l`); IPv4 and IPv6; with or without `-D` and `-O`. A file may hold several pings, and other lines
before, between and after them. A ping may be indented, and each line may follow a time that a script or `ts` printed:
it is `received_at_s` if it has a date and a zone or is in Unix seconds, and else is dropped.

- A reply is a row. A later reply to the same echo is one more row, with `duplicate`, marked by ping or not.
- "no answer yet" (or "Request timeout") is a row that is lost, unless the reply comes later: then it is that
  reply's row, not lost, and `error` keeps the earlier message.
- Echoes that no line shows are lost rows: those between the first and the newest sequence, and those at the
  end that the footer counts. A log without footer (ping was killed) has no rows beyond its end.
- Windows prints no sequences: its echoes are counted from 1. Its "time<1ms" is a reply (not lost) whose
  `rtt_ms` is null and whose `error` is "time<1ms": it is only known to be less than 1 ms.
- Times of day without a date (macOS `--apple-time`) are dropped; toybox prints whole milliseconds only.
- "time=0.000 ms" (the clock was set back) and replies too short to carry a time have a null `rtt_ms` too.
- The counts of the footer must fit the rows, and its minimum, mean and maximum the times.
- "time=60.10 ms" of iputils s20180629 stands for 61.0 (see `footer_times`). If the footer proves it, `rtt_ms` is 61.0;
otherwise null. `error` keeps the printed text.
- A ping that printed no header, for example because it did not know its host, has no rows.

A log passes through the modules in this order: `scan` cuts it into lines, `plain_lines` recognises ordinary replies a
chunk at a time with numpy, `lines` reads every other line, `echoes` makes rows of both, `footer_times` checks the times
against those of the footer, and `log` puts the rows together as tables.
"""

from .log import convert, read

__all__ = ["convert", "read"]
