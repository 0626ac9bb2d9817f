/**
 * What people's programs ask all day, with a token, on 32 connections, against a bare `node:http` that sends the same
 * bytes. Each server and the load have a core of their own where that can be had. Memory is read from the same
 * processes.
 */
import { startTestIssuer } from '../../test/support/issuer.ts';
import { createClient } from './client.ts';
import { contest, endurance } from './contest.ts';
import { type Cores, twoCores } from './cores.ts';
import { type HttpInstallation, httpInstallations, settle } from './http-installations.ts';
import { memoryRow } from './memory.ts';
import type { Scratch } from './scratch.ts';
import { configureService, startService } from './service.ts';
import type { Report } from './table.ts';
import { memoryMiB } from './usage.ts';

/** Longer than the interval between two observations, so that each cluster is observed once. */
const syncingSeconds = 16;
const syncingAimMs = 20;

export async function benchHttp(scratch: Scratch): Promise<Report> {
  const cores = twoCores();
  const rows: Report['rows'] = [];
  const notes = cores
    ? []
    : ['http: no taskset or no second core, so servers and load shared what there is.'];
  for (const installation of httpInstallations) {
    const report = await benchInstallation(scratch, cores, installation);
    rows.push(...report.rows);
    notes.push(...report.notes);
  }
  return { rows, notes };
}

async function benchInstallation(
  scratch: Scratch,
  cores: Cores | undefined,
  installation: HttpInstallation,
): Promise<Report> {
  await using issuer = await startTestIssuer(Date.now);
  const service = await configureService(scratch.folder('http'), {
    lab: installation.lab,
    issuer: issuer.url,
  });
  const server = await startService(scratch, service, { pin: cores?.server ?? [] });
  const arena = { scratch, cores, server };
  const authorization = `Bearer ${await issuer.token('ada', {}, 3600)}`;
  const clients = {
    business: createClient(service.ports.business, authorization),
    platform: createClient(service.ports.platform, authorization),
  };
  const pathOf = await settle(installation, clients);
  const before = memoryMiB(server);
  const bareMemory = { before: 0, after: 0 };
  const { whileSyncing } = installation;
  const rows: Report['rows'] = [];
  const notes: string[] = [];
  for (const { title, api, path } of installation.targets) {
    const target = { title, client: clients[api], path: pathOf(path) };
    const { bare, ...report } = await contest(arena, target);
    rows.push(...report.rows);
    notes.push(...report.notes);
    if (whileSyncing?.target === title) {
      const order = { seconds: syncingSeconds, aimMs: syncingAimMs };
      rows.push(...(await endurance(arena, bare, { ...target, ...order, title: whileSyncing.title })));
    }
    bareMemory.after = Math.max(bareMemory.after, memoryMiB(bare.child));
    bareMemory.before ||= bare.memoryAtStart;
    await scratch.end(bare.child);
  }
  const name = 'bare node:http';
  rows.push(
    memoryRow(`memory after start, ${installation.name}`, before, bareMemory.before, name),
    memoryRow(`memory after the load, ${installation.name}`, memoryMiB(server), bareMemory.after, name),
  );
  await scratch.end(server);
  return { rows, notes };
}
