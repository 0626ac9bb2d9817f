/**
 * All of it on one machine: PostgreSQL with a synchronous standby and who watches over them, three servers, HAProxy in
 * front, a real Slurm cluster with its sshd behind, and people with keys.
 */
import type { ChildProcess } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import type { SlurmSettings } from '../../../src/domain/slurm/settings.ts';
import { noSlurm, type SlurmLab, startSlurmLab } from '../../../test/slurm/lab.ts';
import { newPublicKey } from '../../../test/support/ssh-keys.ts';
import { createScratch, type Scratch } from '../../bench/scratch.ts';
import { answers } from '../../bench/service.ts';
import { type Addresses, pickAddresses, proxyPorts } from './addresses.ts';
import { type Api, createApi } from './api.ts';
import { type Pair, startPair } from './failover.ts';
import { startProxy, whyNoProxy } from './haproxy.ts';
import { type LabIssuer, makeIssuer } from './issuer.ts';
import { clusterId, type Person, registerPerson } from './person.ts';
import { createPostgres, whyNoPostgres } from './postgres.ts';
import { configureServers, type Server } from './servers.ts';
import type { Visitor } from './sign-ins.ts';

export interface ClusterLab extends AsyncDisposable {
  scratch: Scratch;
  addresses: Addresses;
  pair: Pair;
  servers: Server[];
  proxy: ChildProcess;
  slurm: SlurmLab;
  /** By way of HAProxy. */
  urls: Addresses['urls'];
  business: Api;
  platform: Api;
  /** The owner of the cluster's organization, and the organization. */
  owner: { token: string; orgId: string };
  /** Who has access to the cluster and registered a key, which is let in. */
  people: Person[];
  /** Somebody in the cluster's organization whose access comes and goes. */
  guest: { token: string; userId: string };
  /** Tokens of those who only write, in an organization without a cluster. */
  writers: string[];
  /** Who has a password at the issuer: those who sign in, and those who stay signed in at a terminal or on a page. */
  visitors: Record<VisitorKind, Visitor[]>;
}

/** Why there can be no such lab here, as a clause; undefined where there can. */
export function whyNoLab(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has all that it needs';
  return whyNoPostgres() ?? whyNoProxy() ?? (noSlurm || undefined);
}

type VisitorKind = 'visitor' | 'terminal' | 'reader';

const day = 24 * 3600;
const crowd = 24;
/** Of each kind of visitor. */
const visitorCount = 6;
/** Of "correct horse battery staple", at the lowest cost: hashing is not what is measured. */
const passwordHash =
  '$scrypt$ln=10,r=8,p=1$c2FsdHNhbHRzYWx0c2FsdA$bHXojks4sm1uMH4CDw9EcLZ/muyLxbYYc9xGzvNAnuQ';

interface LabOptions {
  people: number;
  /** A directory in which the servers' logs stay. */
  logs?: string | undefined;
  say(sentence: string): void;
}

export async function openLab({ people: peopleCount, logs, say }: LabOptions): Promise<ClusterLab> {
  await using stack = new AsyncDisposableStack();
  const scratch = stack.use(createScratch());
  // PostgreSQL's account passes.
  chmodSync(scratch.dir, 0o711);
  const addresses = pickAddresses();
  const issuer = await makeIssuer(addresses.urls.issuer);
  const pair = await startDatabases(scratch, addresses, say);
  stack.defer(() => pair.stop());
  const slurm = stack.use(startSlurmLab({ HOMES: 'shared', NODES: 'a1' }));
  // The net under it, for a Ctrl-C and an error that nobody caught.
  const wipe = () => {
    pair.killNow();
    slurm[Symbol.dispose]();
  };
  process.once('exit', wipe);
  stack.defer(() => void process.off('exit', wipe));
  const names = Array.from({ length: peopleCount }, (_, index) => `person-${index + 1}`);
  const servers = configureServers(scratch, {
    addresses,
    lab: labOf(names, slurm.settings({ rollout: 'live' })),
    issuer,
    secretsDir: slurm.directory,
    logs,
  });
  stack.defer(() => Promise.all(servers.map((server) => server.stop())).then(() => {}));
  // The first one makes the tables and seeds them.
  await servers[0]?.start();
  await Promise.all(servers.slice(1).map((server) => server.start()));
  const proxy = startProxy(scratch, addresses);
  const ready = 'GET /readyz HTTP/1.1\r\nHost: ready\r\nConnection: close\r\n\r\n';
  await answers(proxyPorts.platform, /^HTTP\/1\.1 200 /, ready, { host: addresses.proxy });
  say('three servers are ready behind HAProxy');

  const { urls } = addresses;
  const business = createApi(urls.business);
  const platform = createApi(urls.platform);
  await letGatewayIn(business, slurm, await issuer.token('root', day));
  const owner = await findMember(business, issuer, 'ada');
  const guest = await findMember(business, issuer, 'guest');
  const people = await Promise.all(
    names.map(async (name) => {
      const token = await issuer.token(name, day);
      return registerPerson({ scratch, addresses, business, platform }, { name, token, orgId: owner.orgId });
    }),
  );
  say(`${people.length} people are let in`);
  const writers = await Promise.all(
    Array.from({ length: crowd }, (_, index) => issuer.token(`writer-${index + 1}`, day)),
  );
  const visitors = await givePasswords(pair);
  const kept = stack.move();
  return {
    ...{ scratch, addresses, urls, pair, servers, proxy, slurm, business, platform },
    ...{ owner, people, guest, writers, visitors },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

async function startDatabases(
  scratch: Scratch,
  { databases }: Addresses,
  say: (sentence: string) => void,
): Promise<Pair> {
  const [first, second] = databases.map((host, index) => {
    const folder = scratch.folder(`postgres-${index + 1}`);
    return createPostgres(`postgres_${index + 1}`, host, folder);
  });
  if (!first || !second) throw new Error('there are two');
  const pair = await startPair(first, second, say);
  await pair.safe();
  return pair;
}

function labOf(names: readonly string[], slurm: SlurmSettings): Lab {
  const person = (username: string, permissions: ('clusters.read' | 'clusters.ssh')[] = []) => ({
    email: `${username}@physics.example`,
    role: 'member' as const,
    username,
    permissions,
  });
  const owner = (username: string) => {
    const { permissions: _, ...rest } = person(username);
    return { ...rest, role: 'owner' as const };
  };
  const writers = Array.from({ length: crowd }, (_, index) => person(`writer-${index + 1}`));
  return {
    users: [{ email: 'root@physics.example', name: 'Root', staff: ['staff.operate'] }],
    organizations: [
      {
        slug: 'physics',
        name: 'Physics',
        members: [
          owner('ada'),
          person('guest'),
          // What happens to members is told on their pages.
          ...namesOf('reader').map(owner),
          ...names.map((name) => person(name, ['clusters.read', 'clusters.ssh'])),
        ],
      },
      { slug: 'writers', name: 'Writers', members: [owner('ben'), ...writers] },
      {
        slug: 'offices',
        name: 'Offices',
        members: [owner('eve'), ...[...namesOf('visitor'), ...namesOf('terminal')].map((one) => person(one))],
      },
    ],
    clusters: [{ name: 'alpha', id: clusterId, organization: 'physics', scheduler: 'sunk', slurm }],
  };
}

const namesOf = (kind: VisitorKind) =>
  Array.from({ length: visitorCount }, (_, index) => `${kind}-${index + 1}`);

/** Straight in the database, which costs nobody a hash. */
async function givePasswords(pair: Pair): Promise<ClusterLab['visitors']> {
  const emails = (kind: VisitorKind) => namesOf(kind).map((name) => `${name}@physics.example`);
  const visitorsOf = (kind: VisitorKind): Visitor[] =>
    emails(kind).map((email) => ({ email, password: 'correct horse battery staple' }));
  const all = [...emails('visitor'), ...emails('terminal'), ...emails('reader')];
  await pair.primary.query(
    `insert into passwords (user_id, hash, generation, updated_at)
     select id, '${passwordHash}', 0, created_at from users
     where primary_email in (${all.map((email) => `'${email}'`).join(', ')})`,
    { database: 'andromeda', limitMs: 60_000 },
  );
  return { visitor: visitorsOf('visitor'), terminal: visitorsOf('terminal'), reader: visitorsOf('reader') };
}

/** Puts the gateways' key where the cluster's hosts look for it. */
async function letGatewayIn(business: Api, slurm: SlurmLab, token: string): Promise<void> {
  const answer = await business.ask<{ public_key: string }>('/operator/gateway', { token });
  writeFileSync(join(slurm.directory, 'etc/gateway.pub'), `${answer?.public_key}\n`);
}

async function findMember(business: Api, issuer: LabIssuer, name: string) {
  const token = await issuer.token(name, day);
  type Me = { user: { id: string }; memberships: { org_id: string }[] };
  const me = await business.ask<Me>('/me', { token });
  // Whoever has a key and the permission has an account on the cluster.
  await business.ask('/me/ssh-keys', { token, body: { public_key: newPublicKey() } });
  return { token, userId: me?.user.id ?? '', orgId: me?.memberships[0]?.org_id ?? '' };
}

/** Waits until something holds; rejects with the sentence where it does not in time. */
export async function until(
  holds: () => boolean | Promise<boolean>,
  limitMs: number,
  sentence: string,
): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(sentence);
    await sleep(100);
  }
}
