/** Both kinds of login node behind one gateway, and what the tests of the clients share. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, type TestContext } from 'node:test';
import type { GatewayOptions } from '../../../src/gateway/ssh/index.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { becomes } from '../../support/app.ts';
import { echo } from '../../sync/login-node/helpers.ts';
import { type ListeningNode, startListeningNode } from '../../sync/login-node/listening.ts';
import { firstOutput, type Lab, openLab, whyNot } from '../lab.ts';

export interface At {
  lab: Lab;
  kind: 'sshd' | 'the embedded login node';
  /** A folder on the login node that the person may write to. */
  folder: string;
}

/** Runs the same tests with either login node behind the gateway; `at` holds when they run. */
export function withEachNode(what: string, limits: GatewayOptions['limits'], tests: (at: At) => void): void {
  for (const kind of ['sshd', 'the embedded login node'] as const)
    describe(`${what}, to ${kind}`, { skip: whyNot }, () => {
      const at = { kind } as At;
      let node: ListeningNode | undefined;
      before(async () => {
        // No home: what this machine's root has in its start-up files is none of these tests' business.
        at.lab = await openLab(limits, ['SetEnv HOME=/nonexistent']);
        if (kind === 'sshd') {
          at.folder = join(at.lab.dir, 'remote');
          mkdirSync(at.folder);
        } else {
          node = await embeddedNode(at.lab);
          at.folder = (await at.lab.ssh(['gateway', 'pwd'])).out.trim();
        }
      });
      after(async () => {
        await at.lab.close();
        await node?.stop();
      });
      tests(at);
    });
}

/** Puts an embedded login node in the place of the lab's sshd. */
async function embeddedNode(lab: Lab): Promise<ListeningNode> {
  // A number of its own: other tests end all that runs under theirs.
  const account = { username: 'ada', uid: 24101, gid: 24101, home: '/home/ada', shell: '/bin/bash' };
  const node = await startListeningNode({
    dataDir: join(lab.dir, 'node-data'),
    authorizedKeys: () => [readFileSync(join(lab.dir, 'client.pub'), 'utf8').trim()],
    accounts: [account],
    log: createLogger('warn', () => {}),
  });
  lab.route.username = account.username;
  lab.route.loginNode = { host: '127.0.0.1', port: node.port, hostKey: node.hostKey };
  return node;
}

/** The Python that has a module (a pyenv's may hide Debian's), or undefined. */
export function pythonWith(module: string): string | undefined {
  return ['/usr/bin/python3', 'python3'].find((python) => {
    try {
      execFileSync(python, ['-W', 'ignore', '-c', `import ${module}`], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  });
}

const echoPorts = new WeakMap<Lab, Promise<string>>();

/**
 * The port of a server on the login node's loopback, which may be another than this machine's, until the lab ends. It sends
 * back what it gets, and its own end after the other's.
 */
export async function echoPort({ lab }: At): Promise<number> {
  const started = echoPorts.get(lab) ?? startEcho(lab);
  echoPorts.set(lab, started);
  return Number(await started);
}

function startEcho(lab: Lab): Promise<string> {
  const child = lab.start('ssh', [...lab.options, 'gateway', 'exec python3 -u -c "$(cat)"']);
  child.stdin?.end(echo);
  return firstOutput(child);
}

/** Starts a master connection of OpenSSH's, which ends with the test; the options lead through it. */
export async function startMaster(t: TestContext, lab: Lab, ...more: string[]): Promise<string[]> {
  const path = join(lab.dir, `mux-${Math.random().toString(36).slice(2, 8)}`);
  const control = ['-o', `ControlPath=${path}`];
  const master = spawn('ssh', [...lab.options, ...control, ...more, '-M', '-N', 'gateway'], {
    stdio: 'ignore',
  });
  // It removes its socket when it ends, at the wrong moment for whoever removes the folder.
  const ended = new Promise((resolve) => master.once('exit', resolve));
  t.after(() => master.kill() && ended);
  await becomes(() => existsSync(path), true);
  return control;
}
