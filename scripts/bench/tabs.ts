/** What 200 open tabs of the console cost those who are logged in: the echo of a session, and how fast logins are. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCookieBrowser } from '../../test/console/harness.ts';
import { startCodeIssuer } from '../../test/support/code-issuer.ts';
import { freePorts } from '../../test/support/ports.ts';
import { echoOnce, openTerminal } from './echo.ts';
import { percentile } from './percentile.ts';
import { nextLine, program } from './program.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import { whyNoSsh } from './ssh-lab.ts';
import type { TabsOrder } from './tab-browsers.ts';
import type { Report, Row } from './table.ts';

const people = 20;
const tabsEach = 10;
const rounds = 4;
const roundMs = 5_000;
const pauseMs = 3;
const aim = 1.25;
const alpha = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';
const names = Array.from({ length: people }, (_, index) => `p${index}`);
const lab = {
  users: [{ email: 'p0@physics.example', staff: ['staff.operate'] }],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: names.map((name) => ({ email: `${name}@physics.example`, role: 'owner', username: name })),
    },
  ],
  clusters: [
    {
      name: 'alpha',
      id: alpha,
      organization: 'physics',
      scheduler: 'sunk',
      simulated: { computeNodes: 1, gpusPerNode: 1 },
    },
  ],
};

/** In ms, and logins a second. */
interface Reading {
  echo: number[];
  logins: number;
}

export async function benchTabs(scratch: Scratch): Promise<Report> {
  const reason = await whyNoSsh(scratch);
  if (reason) return { rows: [], notes: [`tabs is left out: ${reason}.`] };
  await using issuer = await startCodeIssuer();
  issuer.lifetime = 3_600;
  const dir = scratch.folder('tabs');
  const clientSecretFile = join(dir, 'secret');
  writeFileSync(clientSecretFile, issuer.client.secret, { mode: 0o600 });
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const service = await configureService(dir, {
    lab,
    issuer: issuer.url,
    console: { url, clientId: issuer.client.id, clientSecretFile },
  });
  await startService(scratch, service);

  const cookies: string[] = [];
  const browsers: ReturnType<typeof createCookieBrowser>[] = [];
  for (const name of names) {
    issuer.person = name;
    const browser = createCookieBrowser(url);
    await (await browser.follow(`${url}/sign-in`)).response.arrayBuffer();
    browsers.push(browser);
    cookies.push([...browser.cookies].map(([key, value]) => `${key.split(' ')[1]}=${value}`).join('; '));
  }
  const [operator] = browsers;
  if (!operator) throw new Error('nobody signed in');
  const ssh = await openSsh(scratch, operator, service.ports.gateway);
  const terminal = await openTerminal(scratch, ['-tt', ...ssh]);
  const order: TabsOrder = {
    url,
    tabs: cookies.flatMap((cookie, index) =>
      Array.from({ length: tabsEach }, () => ({ cookie, reads: readsOf(index) })),
    ),
  };

  async function measure(): Promise<Reading> {
    const until = performance.now() + roundMs;
    const echo: number[] = [];
    const typing = (async () => {
      while (performance.now() < until) {
        echo.push(await echoOnce(terminal));
        await sleep(pauseMs);
      }
    })();
    let count = 0;
    const began = performance.now();
    while (performance.now() < until) {
      await scratch.run(['ssh', ...ssh, 'true']);
      count += 1;
    }
    const seconds = (performance.now() - began) / 1_000;
    await typing;
    return { echo, logins: count / seconds };
  }

  const seen = {
    alone: { echo: [] as number[], logins: [] as number[] },
    tabs: { echo: [] as number[], logins: [] as number[] },
  };
  // The first warms up.
  await measure();
  for (let round = 0; round < rounds; round += 1) {
    for (const way of round % 2 === 0 ? (['alone', 'tabs'] as const) : (['tabs', 'alone'] as const)) {
      const open =
        way === 'tabs'
          ? scratch.start(program('tab-browsers.ts', order), { stdio: ['ignore', 'pipe', 'inherit'] })
          : undefined;
      if (open) await nextLine(open);
      const reading = await measure();
      seen[way].echo.push(...reading.echo);
      seen[way].logins.push(reading.logins);
      if (open) await scratch.end(open);
    }
  }
  return { rows: rowsOf(seen), notes: [] };
}

function readsOf(index: number): TabsOrder['tabs'][number]['reads'] {
  const own = [
    { topic: 'me"', path: '/api/business/me' },
    { topic: 'my-ssh-sessions', path: '/api/business/me/ssh-sessions' },
    { topic: 'cluster/', path: '/api/business/me' },
  ];
  const operators = [
    { topic: 'ssh-sessions', path: '/api/business/operator/sessions' },
    { topic: 'installation', path: '/api/business/operator/clusters' },
  ];
  return index === 0 ? [...own, ...operators] : own;
}

/** A key for the person, admitted; the arguments of ssh that log in with it. */
async function openSsh(
  scratch: Scratch,
  browser: ReturnType<typeof createCookieBrowser>,
  port: number,
): Promise<string[]> {
  const keyFile = join(scratch.folder('tabs-key'), 'key');
  await scratch.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', '', '-f', keyFile]);
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'key', 'audit-reason': 'bench' };
  const body = JSON.stringify({ public_key: readFileSync(`${keyFile}.pub`, 'utf8').trim() });
  await (await browser.call('/api/business/me/ssh-keys', { method: 'POST', headers, body })).arrayBuffer();
  const me = (await (await browser.call('/api/business/me')).json()) as { memberships: { org_id: string }[] };
  const path = `/api/platform/clusters/${alpha}/ssh-access?organizationId=${me.memberships[0]?.org_id}`;
  for (;;) {
    const access = (await (await browser.call(path)).json()) as { ready: boolean; host_key: string };
    if (access.ready) {
      writeFileSync(`${keyFile}.known`, `[127.0.0.1]:${port} ${access.host_key}\n`);
      break;
    }
    await sleep(200);
  }
  const options = ['IdentitiesOnly=yes', 'BatchMode=yes', `UserKnownHostsFile=${keyFile}.known`];
  return [
    ...['-F', 'none', '-i', keyFile, '-p', `${port}`, '-l', `${alpha}.p0`],
    ...options.flatMap((option) => ['-o', option]),
    '127.0.0.1',
  ];
}

function rowsOf({ alone, tabs }: Record<'alone' | 'tabs', { echo: number[]; logins: number[] }>): Row[] {
  const time = (values: number[], share: number) => `${percentile(values, share).toFixed(2)} ms`;
  const echo = (share: number) => percentile(tabs.echo, share) / percentile(alone.echo, share);
  const rate = (values: number[]) => percentile(values, 0.5);
  const slower = rate(alone.logins) / rate(tabs.logins);
  const row = (name: string, share: number): Row => ({
    row: name,
    ours: time(tabs.echo, share),
    reference: `${time(alone.echo, share)}  no tab`,
    ratio: echo(share),
    aim: `≤ ${aim}`,
    met: echo(share) <= aim,
  });
  return [
    row(`echo beside ${people * tabsEach} tabs and logins, the median`, 0.5),
    row('  99th percentile', 0.99),
    {
      row: `logins one after another beside ${people * tabsEach} tabs`,
      ours: `${rate(tabs.logins).toFixed(1)}/s`,
      reference: `${rate(alone.logins).toFixed(1)}/s  no tab`,
      ratio: slower,
      aim: `≤ ${aim}`,
      met: slower <= aim,
    },
  ];
}
