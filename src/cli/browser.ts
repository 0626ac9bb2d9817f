/** A web browser for the person at the terminal, where there is one on this machine. */
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isAttended } from './ask.ts';
import { printMessage } from './output.ts';

/** Offers to open an address; Enter does it. Returns how to take the offer back. */
export function offerBrowser(address: string): () => void {
  const browser = findBrowser(process.env, process.platform);
  const url = URL.parse(address);
  const isPage = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (!browser || !isPage || !isAttended() || !process.stderr.isTTY) return () => {};
  printMessage('Press Enter to open it in a browser on this machine.');
  const open = () => {
    const [program = '', ...args] = browser;
    const child = spawn(program, [...args, url.href], { stdio: 'ignore', detached: true });
    child.on('error', () => {}); // the address is on the screen
    child.unref();
  };
  process.stdin.once('data', open);
  return () => {
    process.stdin.off('data', open);
    process.stdin.pause();
  };
}

/** The program that opens pages, and what stands before the address: the person's own, or the desktop's where there is a desktop. */
export function findBrowser(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): string[] | undefined {
  const own = env.BROWSER?.split(delimiter)[0];
  if (own) return [own];
  if (platform === 'darwin') return ['open'];
  // `start` is a word of cmd.exe, which would read the & of an address.
  if (platform === 'win32') return ['rundll32.exe', 'url.dll,FileProtocolHandler'];
  const hasDesktop = Boolean(env.DISPLAY || env.WAYLAND_DISPLAY);
  return hasDesktop && isInstalled('xdg-open', env.PATH ?? '') ? ['xdg-open'] : undefined;
}

function isInstalled(program: string, path: string): boolean {
  return path.split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
