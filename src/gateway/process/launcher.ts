/**
 * Gateway processes of another account than the service's, where the service may start none of other accounts: under the packaged
 * units (src/service/host/unit/gateway-units.ts) systemd listens on a socket that only the service can open, and runs what is asked for
 * there as `andromeda-gateway`. A line each: `start BUILD`, answered by the number of the process and then what that
 * writes on stderr; `TERM PID` or `KILL PID`.
 */
import { connect, type Socket } from 'node:net';

/** The socket; undefined where the service starts its processes by itself. */
export const launcher: string | undefined = process.env['ANDROMEDA_GATEWAY_LAUNCHER'] || undefined;

export interface Started {
  pid: number;
  stderr: Socket;
}

/** Starts the process that is to bind the address. Fails in words after `limitMs`, or where systemd starts none. */
export function startByLauncher(path: string, build: string, limitMs: number): Promise<Started> {
  return new Promise((resolve, reject) => {
    let text = '';
    let fault = 'it was ended';
    // The service ends without waiting for it.
    const stderr = connect(path, () => stderr.write(`start ${build}\n`)).unref();
    const late = setTimeout(
      () => stderr.destroy(new Error(`no answer within ${limitMs} ms`)),
      limitMs,
    ).unref();
    stderr.setEncoding('utf8').on('error', ({ message }) => {
      fault = message;
    });
    stderr.once('close', () => {
      clearTimeout(late);
      const why = `systemd started no gateway process by ${path}: ${text.trim() || fault}`;
      reject(new Error(`${why}. \`journalctl -u 'andromeda-gateway*'\` says more.`));
    });
    stderr.on('data', function first(part: string) {
      text = `${text}${part}`.slice(0, 4_000);
      const [line, pid] = /^(\d+)\n/.exec(text) ?? [];
      if (line === undefined) return;
      clearTimeout(late);
      stderr.off('data', first);
      resolve({ pid: Number(pid), stderr });
      if (text.length > line.length) stderr.unshift(text.slice(line.length));
    });
  });
}

export function endByLauncher(path: string, pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  const socket = connect(path, () => socket.end(`${signal.slice(3)} ${pid}\n`)).unref();
  // Then it ends with the run directory.
  socket.on('error', () => {}).resume();
}
