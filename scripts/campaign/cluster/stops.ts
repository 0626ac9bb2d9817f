/** Each process in turn stands still for a while (SIGSTOP), as one does whose machine is short of something. */
import { setTimeout as sleep } from 'node:timers/promises';
import { signal } from './postgres.ts';
import { atMost, type Line, longestWithout, seconds, type World, within } from './trial.ts';

interface Target {
  name: string;
  pids(): number[];
  /** Nothing gets past it, so that the pause may be as long as the stop. */
  isOnlyWay?: boolean;
}

const trial = 'stopped';
const limitMs = 30_000;

/** `only`: names of targets that are tried; all where it is left out. */
export async function stopEach(
  world: World,
  { stopMs, only }: { stopMs: number; only?: RegExp },
): Promise<Line[]> {
  const lines: Line[] = [];
  let lost = 0;
  for (const target of targetsOf(world).filter(({ name }) => only?.test(name) ?? true)) {
    const { lab, sessions } = world;
    await lab.pair.safe();
    await sessions.refill();
    const found = await stop(world, target, stopMs);
    lost += found.lost;
    const limit = target.isOnlyWay ? limitMs + stopMs : limitMs;
    lines.push(within(world, { trial, what: target.name, ms: found.pause, limitMs: limit }));
  }
  return [...lines, atMost(trial, 'sessions lost', lost, 0)];
}

async function stop(world: World, target: Target, stopMs: number): Promise<{ pause: number; lost: number }> {
  const { sessions, writes, logins, signIns, changes, slack, say } = world;
  const before = sessions.all;
  const pids = target.pids();
  const at = performance.now();
  for (const pid of pids) signal(pid, 'SIGSTOP');
  await sleep(stopMs);
  for (const pid of pids) signal(pid, 'SIGCONT');
  await Promise.all([writes, logins, signIns, changes].map((one) => one.next(limitMs * 2 * slack)));
  const found = {
    writes: writes.longestGap(at),
    logins: longestWithout(logins.all, at),
    signIns: longestWithout(signIns.all, at),
    sync: changes.longest(at),
  };
  const gone = before.filter((session) => !session.isOpen);
  for (const session of gone) say(`a session on ${session.server.name} ended: ${session.said}`);
  say(
    `${target.name} (${pids.length}) stopped ${seconds(stopMs)}: writes paused ${seconds(found.writes)}, logins ${seconds(found.logins)}, sign-ins ${seconds(found.signIns)}, sync ${seconds(found.sync)}`,
  );
  return { pause: Math.max(found.writes, found.logins, found.signIns, found.sync), lost: gone.length };
}

function targetsOf({ lab }: World): Target[] {
  const { servers, pair, proxy } = lab;
  const only = (pid: number | undefined) => (pid === undefined ? [] : [pid]);
  const kinds = new Set(
    pair.primary
      .processes()
      .slice(1)
      .map(({ title }) => kindOf(title)),
  );
  return [
    ...servers.map(({ name }, index) => ({ name, pids: () => only(servers[index]?.pid) })),
    ...servers.map(({ name }, index) => ({
      name: `the gateway of ${name}`,
      pids: () => servers[index]?.gateways ?? [],
    })),
    { name: 'HAProxy', pids: () => only(proxy.pid), isOnlyWay: true },
    { name: "the standby's processes", pids: () => pair.standby.processes().map(({ pid }) => pid) },
    { name: "the primary's processes", pids: () => pair.primary.processes().map(({ pid }) => pid) },
    { name: "the primary's first process", pids: () => only(pair.primary.pid) },
    ...[...kinds].map((kind) => ({
      name: `the primary's ${kind}`,
      pids: () =>
        only(
          pair.primary
            .processes()
            .slice(1)
            .find(({ title }) => kindOf(title) === kind)?.pid,
        ),
    })),
  ];
}

/** Of a process of PostgreSQL: `postgres: walwriter `, `postgres: lab andromeda 127.0.0.1(40112) idle`. */
function kindOf(title: string): string {
  const rest = /^postgres: (?:\d+\/\w+: )?(.*)$/.exec(title)?.[1] ?? title;
  if (/ andromeda /.test(rest)) return 'connection of a server';
  return /^[a-z ]+/.exec(rest)?.[0].trim().split(' lab')[0] ?? rest;
}
