/** The SSH gateway: whether something answers there, and with which host key. */
import { connect } from 'node:net';
import { messageOf } from '../../lib/error-message.ts';
import { askProgram } from './program-output.ts';

/** What answers first at an address, or why nothing does. */
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

/** The Ed25519 host key at an address, `ssh-ed25519 AAAA…`; undefined where it could not be asked. */
export async function scanHostKey(host: string, port: number): Promise<string | undefined> {
  const args = ['-T', '5', '-t', 'ed25519', '-p', String(port), host];
  const { stdout } = await askProgram('ssh-keyscan', args, 15_000);
  return /^\S+ (ssh-ed25519 [A-Za-z0-9+/=]+)\s*$/m.exec(stdout)?.[1];
}
