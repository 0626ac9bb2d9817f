/** Where the lines of the log go: stderr, with a bound on what waits for a reader, and priorities for systemd's journal. */
import { fstatSync } from 'node:fs';

/** What may wait for a reader that does not read, in characters. Several minutes of a busy service. */
const mostWaiting = 8 * 1024 * 1024;

/**
 * Writes lines to stderr. Where that is systemd's journal, each begins with its priority, which the journal takes off again
 * (systemd.exec(5), JOURNAL_STREAM; sd-daemon(3)). Lines beyond what may wait are left out, and counted in a line
 * when the reader goes on.
 */
export function createStderrWriter(
  journal = process.env['JOURNAL_STREAM'],
  stream: { readonly writableLength: number; write(text: string): unknown } = process.stderr,
): (line: string) => void {
  const format = isStderr(journal) ? withPriority : (line: string) => line;
  let lost = 0;
  return (line) => {
    if (stream.writableLength > mostWaiting) {
      lost += 1;
      return;
    }
    if (lost > 0) stream.write(format(lostLine(lost)));
    lost = 0;
    stream.write(format(line));
  };
}

function lostLine(lines: number): string {
  return `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), event: 'log.lost', lines })}\n`;
}

/** As syslog(3) numbers them. */
const priorities: Record<string, number> = { error: 3, warn: 4, info: 6, debug: 7 };

function withPriority(line: string): string {
  const [, level = 'info'] = /^\{"level":"(\w+)"/.exec(line) ?? [];
  return `<${priorities[level] ?? priorities['info']}>${line}`;
}

function isStderr(stream: string | undefined): boolean {
  if (stream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(2);
    return stream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}
