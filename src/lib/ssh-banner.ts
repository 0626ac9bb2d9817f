/** Probes an address for an SSH server, by its first line. */
import { connect } from 'node:net';
import { messageOf } from './error-message.ts';

/** Resolves to the first line received from an address, or to the reason why there is none. */
export function readBanner(
  host: string,
  port: number,
  timeoutMs: number,
): Promise<{ banner: string } | { fault: string }> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    let text = '';
    const end = (result: { banner: string } | { fault: string }) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(
      () => end({ fault: `nothing answers there within ${timeoutMs / 1000} seconds` }),
      timeoutMs,
    );
    socket.setEncoding('latin1');
    socket.on('error', (error) => end({ fault: faultOf(error) }));
    socket.on('close', () => end({ fault: 'the connection was closed before it said anything' }));
    socket.on('data', (part: string) => {
      text += part;
      const line = text.split(/\r?\n/)[0] ?? '';
      if (text.includes('\n') || text.length > 255) end({ banner: line.slice(0, 255) });
    });
  });
}

function faultOf(error: NodeJS.ErrnoException): string {
  const reasons: Record<string, string> = {
    ECONNREFUSED: 'the connection was refused',
    ENOTFOUND: 'the host name is not known',
    EAI_AGAIN: 'the host name could not be looked up',
    ETIMEDOUT: 'the connection timed out',
    EHOSTUNREACH: 'there is no route to the host',
    ENETUNREACH: 'the network is unreachable',
    ECONNRESET: 'the connection was closed',
  };
  return reasons[error.code ?? ''] ?? messageOf(error);
}
