/** A driver and the API server that it drives. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubernetesSideReport } from '../../src/domain/access/manifest.ts';
import { sentencesOf } from '../../src/domain/clusters/cluster.ts';
import type { KubernetesAccess } from '../../src/domain/kubernetes/bindings.ts';
import type { KubernetesSettings } from '../../src/domain/kubernetes/settings.ts';
import { createLogger } from '../../src/lib/log.ts';
import type { KubernetesDriver } from '../../src/sync/index.ts';
import { createKubernetesDriver } from '../../src/sync/kubernetes/index.ts';
import { temporaryDirectory } from '../support/directory.ts';
import type { BindingObject } from './bindings.ts';
import { type FakeApi, startFakeApi } from './fake-api.ts';

export const clusterId = '7b6f1f0e-3c39-4a8e-9a55-0d1c2b3a4f50';

type Grant = KubernetesAccess['grants'][number];
type Member = KubernetesAccess['members'][number];

export interface KubernetesLab extends AsyncDisposable {
  api: FakeApi;
  driver: KubernetesDriver;
  /** What people hold; a test changes it. */
  access: { members: Member[]; grants: Grant[] };
  settings: KubernetesSettings;
  /** Everything that was logged. */
  log: string[];
  /** As a pass of the sync loop, one after the other: permissions, then the report, and what stands in the way of both. */
  pass(): Promise<KubernetesSideReport>;
  /** How often the driver asked for a pass by itself. */
  readonly wakes: number;
  /** What happens then; nothing, unless a test says so. */
  onWake: () => void;
  /** As `namespace/name role subject,subject`, ours and others', sorted. */
  bound(): string[];
}

export function grant(id: string, fields: Partial<Grant> = {}): Grant {
  const usual = { relation: 'kubernetes.developer', scope: 'team-a', roleId: null } as const;
  return { ...personOf(id), grantId: `grant_${id}`, ...usual, ...fields };
}

export const member = (name: string, role: Member['role'], permissions: string[] = []): Member => ({
  ...{ ...personOf(name), role, permissions },
});

const personOf = (name: string) => ({
  ...{ userId: `user_${name}`, email: `${name}@physics.example` },
  ...{ preferredUsername: name, subjects: [`sub-${name}`] },
});

export async function startKubernetesLab(
  options: {
    api?: FakeApi;
    clusterId?: string;
    claim?: string;
    issuer?: string;
    settings?: Partial<KubernetesSettings>;
    token?: string;
    /** Whether it may still change something there. */
    confirm?(): Promise<void>;
  } = {},
): Promise<KubernetesLab> {
  const directory = temporaryDirectory();
  const api = options.api ?? (await startFakeApi());
  const file = (name: string, text: string) => {
    const path = join(directory.path, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const access: KubernetesLab['access'] = { members: [], grants: [] };
  const log: string[] = [];
  let wakes = 0;
  const settings: KubernetesSettings = {
    server: api.url,
    certificateAuthority: file('ca.pem', api.authority.ca),
    tokenFile: file('token', options.token ?? 'andromeda'),
    ...options.settings,
  };
  const driver = createKubernetesDriver({
    clusterId: options.clusterId ?? clusterId,
    name: 'gamma',
    settings,
    rule: { claim: options.claim ?? 'email', issuer: options.issuer ?? 'https://issuer.example' },
    wake() {
      wakes += 1;
      lab.onWake();
    },
    ...(options.confirm && { confirm: options.confirm }),
    log: createLogger('debug', (line) => log.push(line)),
  });
  const signal = AbortSignal.timeout(60_000);
  const lab: KubernetesLab = {
    onWake() {},
    api,
    driver,
    access,
    settings,
    log,
    get wakes() {
      return wakes;
    },
    pass: () => passOf(driver, access, signal),
    bound: () => [...api.bindings.all.values()].map(describe).sort(),
    async [Symbol.asyncDispose]() {
      await driver.close();
      if (!options.api) await api.stop();
      directory[Symbol.dispose]();
    },
  };
  return lab;
}

/** One in which grants of these names are in force. */
export async function startBound(...ids: string[]): Promise<KubernetesLab> {
  const lab = await startKubernetesLab();
  lab.access.grants.push(...ids.map((id) => grant(id)));
  await lab.pass();
  return lab;
}

export async function passOf(
  driver: KubernetesDriver,
  access: KubernetesAccess,
  signal: AbortSignal,
): Promise<KubernetesSideReport> {
  const outcome = await driver.apply(access, signal).catch((error: Error) => ({ failure: error.message }));
  const report = await driver.observe(signal);
  return { ...report, failure: sentencesOf([report.failure, outcome?.failure]).join(' ') || null };
}

function describe({ metadata, roleRef, subjects = [] }: BindingObject): string {
  const where = metadata.namespace === undefined ? '' : `${metadata.namespace}/`;
  const name = metadata.name.replace(`andromeda.${clusterId}.`, '');
  return `${where}${name} ${roleRef.name} ${subjects.map((subject) => subject.name).join()}`;
}
