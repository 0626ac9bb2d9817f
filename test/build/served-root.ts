/** The service from the executable in a clean root, somebody signed in there, and their ssh outside of it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { alpha, becomes, eventually, physics } from '../support/app.ts';
import { finished, heard } from '../support/heard.ts';
import { startTestIssuer } from '../support/issuer.ts';
import { limit } from '../support/limit.ts';
import { freePorts } from '../support/ports.ts';
import { keygen } from '../support/ssh-keys.ts';
import type { CleanRoot, Run } from './clean-root.ts';

const operator = { email: 'ada@physics.example', name: 'Ada', staff: ['staff.operate'] };

export interface ServedRoot extends AsyncDisposable {
  /** Runs the program in there, and fails with what it said on stderr. */
  cli(...args: string[]): Promise<string>;
  /** Registers a key and waits until it is in place. */
  registerKey(): Promise<void>;
  /** ssh, scp or sftp as the person, on the outside. */
  person(
    program: string,
    args: string[],
    input?: string,
  ): Promise<{ status: number | null; out: string; err: string }>;
  platformUrl: string;
  gateway: number;
  target: string;
  log(): string;
  /** Stops it as systemd does; resolves to its exit status. */
  stop(): Promise<number | null>;
}

export async function serveFrom(clean: CleanRoot, path: string, how: Run): Promise<ServedRoot> {
  const issuer = await startTestIssuer(Date.now);
  const [platform = 0, business = 0, gateway = 0] = await freePorts(3);
  const at = (port: number) => ({ listen: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` });
  const config = {
    dataDir: './data',
    platform: at(platform),
    business: at(business),
    gateway: { listen: `127.0.0.1:${gateway}` },
    identity: { issuer: issuer.url },
    sync: { intervalSeconds: 1 },
    seed: './lab.yaml',
    // Without root, the simulated login node is not started otherwise.
    ...(how.uid !== 0 && { clusters: { unsafeSimulatedLogins: true } }),
  };
  writeFileSync(join(path, 'srv/andromeda.yaml'), JSON.stringify(config));
  const lab = { ...physics, users: [...(physics.users ?? []), operator] };
  writeFileSync(join(path, 'srv/lab.yaml'), JSON.stringify(lab));
  chownSync(join(path, 'srv'), how.uid, how.uid);
  const served = clean.start(how, 'serve', '--config', '/srv/andromeda.yaml');
  const exited = new Promise<number | null>((done) => served.once('exit', done));
  const log = heard(served.stdout, served.stderr);
  const dispose = async () => {
    served.kill('SIGKILL');
    await exited;
    await issuer[Symbol.asyncDispose]();
  };
  try {
    await becomes(() => log().includes('serve.ready'), true);
  } catch (error) {
    await dispose();
    throw error;
  }

  const session = {
    platformUrl: config.platform.url,
    businessUrl: config.business.url,
    issuer: issuer.url,
    clientId: 'andromeda-cli',
    accessToken: await issuer.token('ada'),
    resource: config.platform.url,
    user: { id: 'ada', email: 'ada@physics.example', name: 'Ada' },
  };
  const state = join(path, how.uid === 0 ? 'root' : 'home/carl', '.local/state/andromeda');
  mkdirSync(state, { recursive: true });
  const profile = { platformUrl: session.platformUrl, sessions: { [session.platformUrl]: session } };
  writeFileSync(join(state, 'default.json'), JSON.stringify(profile));
  const identity = join(path, 'srv/key');

  async function cli(...args: string[]) {
    const { status, stdout, stderr } = await clean.run(how, ...args);
    assert.equal(status, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  }
  return {
    cli,
    platformUrl: session.platformUrl,
    gateway,
    target: `${alpha}.ada@127.0.0.1`,
    log,
    async registerKey() {
      const key = keygen('-t', 'ed25519');
      writeFileSync(identity, key.privateKey, { mode: 0o600 });
      const headers = ['-H', 'Idempotency-Key: 1', '-H', 'Audit-Reason: test'];
      const body = JSON.stringify({ public_key: key.publicKey });
      await cli('call', ...headers, '-d', body, 'business', 'POST', '/me/ssh-keys');
      const me = JSON.parse(await cli('call', 'business', 'GET', '/me'));
      const question = `/clusters/${alpha}/ssh-access?organizationId=${me.memberships[0].org_id}`;
      const access = async () => JSON.parse(await cli('call', 'platform', 'GET', question));
      await eventually(access, (answer) => answer.ready === true);
    },
    async person(program, args, input) {
      const options = ['IdentitiesOnly=yes', 'IdentityAgent=none', 'BatchMode=yes', 'LogLevel=ERROR']
        .concat('StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null')
        .flatMap((option) => ['-o', option]);
      const own = ['-F', 'none', '-i', identity, ...options];
      const child = spawn(program, [...own, ...args], { timeout: limit(90_000) });
      child.stdin.on('error', () => {}); // the program need not read it
      child.stdin.end(input);
      const { status, out, err } = await finished(child);
      return { status, out, err };
    },
    stop() {
      served.kill('SIGTERM');
      return exited;
    },
    [Symbol.asyncDispose]: dispose,
  };
}
