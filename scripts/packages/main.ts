/**
 * `scripts/release`: what a release consists of, in dist/release (docs/release.md).
 *
 *   parts.ts (which, and can they be made here) → the servers (scripts/build, arm64.ts) → deb.ts, rpm.ts, image.ts
 *                                               → clients.ts → SHA256SUMS, and its signature (sign.ts)
 *
 * `--only PARTS` makes some of it; `--verify` makes it twice, and fails when a byte differs; `--key FILE` signs.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { buildClient } from '../build/client.ts';
import { stampOf } from '../build/stamp.ts';
import { prepareArm64 } from './arm64.ts';
import { makeClients } from './clients.ts';
import { makeDeb } from './deb.ts';
import { makeImage } from './image.ts';
import { obstaclesTo, type Part, partsAskedFor, type ServerPart, serversFor } from './parts.ts';
import { makeRpm, rpmArchitectures } from './rpm.ts';
import { billOfClients, billOfServer } from './sbom.ts';
import { signFile } from './sign.ts';

const root = join(import.meta.dirname, '../..');
const { name, version, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const seconds = Date.parse(stampOf(root).date) / 1000;
const architectures = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' } as const;
const values = new Command('scripts/release')
  .description('Makes what a release consists of. Takes minutes for linux-arm64.')
  .option('--only <parts>', 'some of it, with commas: linux-x64, linux-arm64, clients, deb, rpm, image')
  .option('--verify', 'make everything twice, and fail where a byte differs')
  .option(
    '--key <file>',
    'sign with an SSH key: a private one, or a public one whose other half an agent has',
  )
  .option('--out <directory>', 'where to, in the place of dist/release')
  .addHelpText('after', '\nExample: scripts/release --verify --key release-key')
  .parse()
  .opts<{ only?: string; verify?: boolean; key?: string; out?: string }>();
const out = resolve(values.out ?? join(root, 'dist/release'));
const key = values.key && resolve(values.key);

try {
  process.exitCode = await release();
} catch (error) {
  console.error(`release: ${error instanceof Error ? error.message : error}`);
  process.exitCode = 1;
}

async function release(): Promise<number> {
  const chosen = partsAskedFor(values.only);
  const obstacles = obstaclesTo(chosen);
  if (obstacles.length > 0) throw new Error(obstacles.join('; '));
  mkdirSync(join(root, 'dist'), { recursive: true });
  const work = mkdtempSync(join(root, 'dist/release-'));
  try {
    const made = await make(chosen, join(work, 'one'));
    if (values.verify) requireSame(made, await make(chosen, join(work, 'two')));
    rmSync(out, { recursive: true, force: true });
    mkdirSync(resolve(out, '..'), { recursive: true });
    renameSync(made, out);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  if (key) signFile(join(out, 'SHA256SUMS'), key);
  process.stdout.write(readFileSync(join(out, 'SHA256SUMS')));
  return 0;
}

/** Makes the parts below `work`. Returns the directory with what is released. */
async function make(chosen: readonly Part[], work: string): Promise<string> {
  const made = join(work, 'release');
  mkdirSync(made, { recursive: true });
  for (const server of serversFor(chosen)) await makeServer(server, chosen, { work, made });
  if (chosen.includes('clients')) {
    say('clients');
    writeFileSync(join(made, `${name}-${version}.mjs`), await buildClient(), { mode: 0o755 });
    const versions = await makeClients({
      root,
      work: join(work, 'clients'),
      version,
      seconds,
      ...(key && { sign: (file: string) => signFile(file, key) }),
      out: join(made, `${name}-clients-${version}.tar.gz`),
    });
    writeFileSync(join(made, `${name}-clients-${version}.cdx.json`), await billOfClients(root, versions));
  }
  const sums = readdirSync(made)
    .sort()
    .map(
      (file) =>
        `${createHash('sha256')
          .update(readFileSync(join(made, file)))
          .digest('hex')}  ${file}\n`,
    );
  writeFileSync(join(made, 'SHA256SUMS'), sums.join(''));
  return made;
}

async function makeServer(
  server: ServerPart,
  chosen: readonly Part[],
  { work, made }: { work: string; made: string },
): Promise<void> {
  const program = join(made, `${name}-${version}-${server}`);
  const architecture = architectures[server];
  say(server);
  const target = [];
  if (server !== `${process.platform}-${process.arch}`) {
    const directory = join(work, server);
    mkdirSync(directory);
    writeFileSync(join(directory, 'target.json'), JSON.stringify(prepareArm64(root, directory)));
    target.push('--target', join(directory, 'target.json'));
  }
  const notices = join(work, `notices-${server}`);
  const build = [join(root, 'scripts/build/main.ts'), '--out', program, '--notices', notices, ...target];
  execFileSync(process.execPath, build, { stdio: ['ignore', 'ignore', 'inherit'] });
  const sbom = `${program}.cdx.json`;
  writeFileSync(sbom, await billOfServer(root, server));
  const options = { program, architecture, version, description, sbom, notices, seconds };
  if (chosen.includes('deb')) {
    say(`deb, ${architecture}`);
    makeDeb({
      ...options,
      work: join(work, 'deb'),
      out: join(made, `${name}_${version}_${architecture}.deb`),
    });
  }
  if (chosen.includes('rpm')) {
    const file = `${name}-${version}-1.${rpmArchitectures[architecture]}.rpm`;
    say(`rpm, ${architecture}`);
    makeRpm({ ...options, work: join(work, 'rpm'), out: join(made, file) });
  }
  if (chosen.includes('image')) {
    say(`image, ${architecture}`);
    const debs = await makeImage({ ...options, work: join(work, 'image'), out: `${program}.oci.tar` });
    writeFileSync(`${program}.oci.cdx.json`, await billOfServer(root, server, debs));
  }
  copyFileSync(join(import.meta.dirname, 'Containerfile'), join(made, 'Containerfile'));
  copyFileSync(join(root, 'LICENSE'), join(made, 'LICENSE'));
}

function requireSame(one: string, two: string): void {
  const sums = (directory: string) => readFileSync(join(directory, 'SHA256SUMS'), 'utf8').split('\n');
  const second = sums(two);
  const different = sums(one).filter((line) => !second.includes(line));
  if (different.length === 0) return;
  throw new Error(
    `two builds of the same source differ: ${different.map((line) => line.slice(66)).join(', ')}`,
  );
}

function say(what: string): void {
  process.stderr.write(`release: ${what}\n`);
}
