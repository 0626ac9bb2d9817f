/** What is in files of a data directory on SQLite, and in tables where servers share a database: read from there, put there. */
import { existsSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  keyKinds,
  keySetText,
  knownHostsName,
  readKeySet,
  secretTitle,
  serviceSecrets,
} from '../../../domain/key-rotation.ts';
import { writeWhole } from '../../../lib/whole-file.ts';
import type { FilesAndTables } from '../../../store/data-dir/copy-database.ts';
import { keyFileOf, readKeyFiles, writeKeyFiles } from '../../../store/data-dir/key-files.ts';

const knownHosts = 'slurm/known_hosts.met';
const hostRecord = 'slurm/hosts.json';

export function readServiceFiles(dataDir: string): FilesAndTables {
  const secrets = new Map<string, string>();
  for (const kind of keyKinds) {
    const set = readKeyFiles(dataDir, kind);
    if (set) secrets.set(serviceSecrets[kind].name, keySetText(set));
  }
  for (const [clusterId, text] of clusterFiles(dataDir, knownHosts))
    secrets.set(knownHostsName(clusterId), text);
  const managedHosts = new Map<string, { address: string; host: string }[]>();
  for (const [clusterId, text] of clusterFiles(dataDir, hostRecord))
    managedHosts.set(
      clusterId,
      text
        .split('\n')
        .filter(Boolean)
        .map((host) => ({ address: (JSON.parse(host) as { address: string }).address, host })),
    );
  return { secrets, managedHosts };
}

/** Puts into files what the tables hold. A key that is a file already is the one that was used, and stays. */
export function writeServiceFiles(dataDir: string, { secrets, managedHosts }: FilesAndTables): void {
  for (const kind of keyKinds) {
    const { name } = serviceSecrets[kind];
    const text = secrets.get(name);
    if (text !== undefined && !existsSync(keyFileOf(dataDir, kind)))
      writeKeyFiles(dataDir, kind, readKeySet(text, secretTitle(name)));
  }
  for (const [name, text] of secrets) {
    const [, clusterId] = /^known-hosts\/([\w-]+)$/.exec(name) ?? [];
    if (clusterId !== undefined) write(join(dataDir, 'clusters', clusterId, knownHosts), text);
  }
  for (const [clusterId, hosts] of managedHosts)
    write(join(dataDir, 'clusters', clusterId, hostRecord), hosts.map(({ host }) => `${host}\n`).join(''));
}

function clusterFiles(dataDir: string, name: string): [clusterId: string, text: string][] {
  return globSync(`clusters/*/${name}`, { cwd: dataDir }).map((path) => [
    path.split('/')[1] ?? '',
    readFileSync(join(dataDir, path), 'utf8'),
  ]);
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  writeWhole(file, text);
}
