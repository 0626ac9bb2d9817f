/** The program at a terminal: what a person sees, and types. */
import { join } from 'node:path';
import pty from 'node-pty';
import { compiled } from '../harness.ts';

const root = join(import.meta.dirname, '../../..');

export interface Terminal {
  /** Resolves to everything seen so far, once `text` is in what came since the last call. */
  until(text: string): Promise<string>;
  type(text: string): void;
  ended: Promise<{ status: number; screen: string }>;
}

/** Starts `andromeda` with `args`, its state in `stateHome`. */
export function atTerminal(stateHome: string, args: string[], env: Record<string, string> = {}): Terminal {
  const child = pty.spawn(join(root, 'scripts/andromeda'), args, {
    cols: 200,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: stateHome,
      XDG_STATE_HOME: stateHome,
      TERM: 'xterm',
      ...compiled,
      ...env,
    },
  });
  let screen = '';
  let seen = 0;
  let check = () => {};
  child.onData((text) => {
    screen += text.replaceAll('\r\n', '\n');
    check();
  });
  const ended = new Promise<{ status: number; screen: string }>((resolve) =>
    child.onExit(({ exitCode }) => {
      check();
      resolve({ status: exitCode, screen });
    }),
  );
  return {
    type: (text) => child.write(text),
    ended,
    until: (text) =>
      new Promise((resolve, reject) => {
        const limit = setTimeout(() => reject(new Error(`no '${text}' in: ${screen}`)), 10_000);
        check = () => {
          const found = screen.indexOf(text, seen);
          if (found < 0) return;
          seen = found + text.length;
          clearTimeout(limit);
          check = () => {};
          resolve(screen);
        };
        check();
      }),
  };
}
