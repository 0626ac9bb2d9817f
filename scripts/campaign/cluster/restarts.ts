/**
 * Each server in turn is reloaded (SIGHUP), restarted as by an upgrade (SIGUSR2), and stopped and started again (SIGTERM): whoever asks by
 * way of HAProxy is answered, every time, without asking twice.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { signal } from './postgres.ts';
import { atMost, type Line, type World } from './trial.ts';

const trial = 'a server restarted';
const clients = 6;
const betweenMs = 30;
/** HAProxy has noticed that it is away, and then that it is there. */
const noticedMs = 4_000;

export async function restartServers(world: World): Promise<Line[]> {
  const { lab, sessions, say } = world;
  const lost = { SIGHUP: 0, SIGUSR2: 0, SIGTERM: 0 };
  const asked = startAsking(world);
  for (const server of lab.servers) {
    for (const name of ['SIGHUP', 'SIGUSR2', 'SIGTERM'] as const) {
      await sessions.refill();
      const before = sessions.all.filter((one) => name !== 'SIGTERM' || one.server !== server);
      const failures = asked.failures.length;
      if (server.pid !== undefined) signal(server.pid, name);
      await sleep(noticedMs);
      await server.ready();
      await sleep(noticedMs);
      const gone = before.filter(({ isOpen }) => !isOpen);
      for (const session of gone) say(`a session on ${session.server.name} ended: ${session.said}`);
      lost[name] += gone.length;
      say(`${server.name} got ${name}: ${asked.failures.length - failures} requests failed`);
    }
  }
  await asked.stop();
  for (const failure of asked.failures.slice(0, 20)) say(failure);
  return [
    atMost(trial, `of ${asked.count} requests failed, each asked once`, asked.failures.length, 0),
    atMost(trial, 'sessions lost by a reload', lost.SIGHUP, 0),
    atMost(trial, 'sessions lost by an upgrade', lost.SIGUSR2, 0),
    atMost(trial, 'sessions of other servers lost by a stop', lost.SIGTERM, 0),
  ];
}

/** Reads, writes and pages, each asked once. */
function startAsking({ lab }: World) {
  const failures: string[] = [];
  const stopped = new AbortController();
  let count = 0;

  async function once(url: string, init: RequestInit = {}): Promise<void> {
    count += 1;
    const what = `${init.method ?? 'GET'} ${new URL(url).pathname}`;
    try {
      const reply = await fetch(url, { ...init, signal: AbortSignal.timeout(15_000) });
      const body = await reply.text();
      if (!reply.ok) failures.push(`${what} was answered ${reply.status}: ${body.slice(0, 200)}`);
    } catch (error) {
      const { message, cause } = error as Error;
      failures.push(`${what} was not answered: ${cause ?? message}`);
    }
  }

  async function work(token: string): Promise<void> {
    const authorization = `Bearer ${token}`;
    while (!stopped.signal.aborted) {
      await once(`${lab.business.url}/me`, { headers: { authorization } });
      await once(`${lab.urls.console}/healthz`);
      await once(`${lab.urls.issuer}/.well-known/openid-configuration`);
      await once(`${lab.business.url}/me/login-preferences`, {
        method: 'PUT',
        headers: {
          ...{ authorization, 'content-type': 'application/json' },
          ...{ 'audit-reason': 'campaign', 'idempotency-key': randomUUID() },
        },
        body: JSON.stringify({ shell: '/bin/bash' }),
      });
      await sleep(betweenMs);
    }
  }

  const running = lab.writers.slice(-clients).map((token) => work(token));
  return {
    failures,
    get count() {
      return count;
    },
    async stop() {
      stopped.abort();
      await Promise.all(running);
    },
  };
}
