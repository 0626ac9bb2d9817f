/** Writes log lines to stderr, with a limit on the lines that wait for a reader, and priorities for systemd's journal. */
import { fstatSync } from 'node:fs';

/** Limit on characters that wait for a slow reader: several minutes of a busy service. */
const mostWaiting = 8 * 1024 * 1024;

/**
 * Writes lines to stderr. Where that is systemd's journal, each begins with its priority, which the journal strips
 * (systemd.exec(5), JOURNAL_STREAM; sd-daemon(3)). Lines above the limit are dropped, and counted in a line when the
 * reader continues.
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

/** The numbers of syslog(3). */
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
