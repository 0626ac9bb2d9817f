/**
 * Structured logging: one JSON line an event on stderr, so that stdout stays for data.
 * Secrets and request bodies never go in here.
 */
import { escapeControls } from './domain/visible-text.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';
export type LogFields = Record<string, unknown>;

export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

const levels: LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent'];

/** A logger that writes events of `level` and above as JSON lines to `write` (stderr if left out). */
export function createLogger(
  level: LogLevel,
  write: (line: string) => void = (line) => process.stderr.write(line),
): Logger {
  const threshold = levels.indexOf(level);
  const at = (name: LogLevel) => {
    if (levels.indexOf(name) < threshold) return () => {};
    return (event: string, fields: LogFields = {}) =>
      write(line({ time: new Date().toISOString(), level: name, event, ...fields }));
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** JSON leaves C1 and bidirectional controls as they are, which a terminal that shows the log obeys. */
function line(entry: object): string {
  return `${escapeControls(JSON.stringify(entry, plain))}\n`;
}

function plain(_key: string, value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  return { name: value.name, message: value.message, stack: value.stack, cause: value.cause };
}
