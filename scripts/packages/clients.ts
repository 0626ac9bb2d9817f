/**
 * The clients for laptops: the portable client in a copy of each platform's Node, and all of them in one file that
 * a service offers (docs/release.md).
 *
 *   andromeda.mjs → Node 26 packs a blob → elf.ts puts it into Linux's Node
 *                 → Node 26 puts it into Windows' Node (pe.ts took the signature off) and macOS's (mach-o.ts signs it anew)
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildClient } from '../build/client.ts';
import { injectBlob } from '../build/elf.ts';
import { runnerFor } from './emulators.ts';
import { clientNodes, fetchPackage } from './fetched.ts';
import { signAdHoc, signedPages } from './mach-o.ts';
import { withChecksum, withoutSignature } from './pe.ts';
import { writeTar } from './tar.ts';

export interface ClientsOptions {
  root: string;
  /** A directory for what is only needed meanwhile. */
  work: string;
  version: string;
  /** The time of what is in the archive, since 1970. */
  seconds: number;
  /** Signs a file and returns the signature's file; undefined where there is no key. */
  sign?: (file: string) => string;
  /** Where the archive goes. */
  out: string;
}

type Platform = keyof typeof clientNodes;
const quarantine =
  'Signed ad hoc; every page was checked. Fetched by a browser, it is in quarantine: xattr -d com.apple.quarantine FILE';
const libatomic = 'Needs libatomic.so.1 (Debian and Ubuntu: libatomic1).';

/** How each platform's executable comes about, and what is said of it where it was not run. */
const kinds: Record<Platform, { name: string; note: string }> = {
  'linux-x64': { name: 'andromeda-linux-x64', note: libatomic },
  'linux-arm64': { name: 'andromeda-linux-arm64', note: libatomic },
  'win32-x64': {
    name: 'andromeda-win32-x64.exe',
    note: 'Not signed by a publisher: SmartScreen may ask.',
  },
  'darwin-arm64': {
    name: 'andromeda-darwin-arm64',
    note: quarantine,
  },
  'darwin-x64': {
    name: 'andromeda-darwin-x64',
    note: quarantine,
  },
};

/** Makes the archive of all clients; resolves to the versions of their Node. Throws where one does not hold what it should. */
export async function makeClients({
  root,
  work,
  version,
  seconds,
  sign,
  out,
}: ClientsOptions): Promise<NodeJS.ProcessVersions> {
  mkdirSync(work, { recursive: true });
  const node = (platform: Platform) => {
    const directory = fetchPackage(root, clientNodes[platform], join(work, `node-${platform}`));
    return join(directory, 'bin', platform === 'win32-x64' ? 'node.exe' : 'node');
  };
  const packer = node(`linux-${process.arch}` as Platform);
  const licence = readFileSync(join(work, `node-linux-${process.arch}`, 'LICENSE'), 'utf8');
  writeFileSync(join(work, 'andromeda.mjs'), await buildClient(licence));
  const files = [];
  for (const platform of Object.keys(kinds) as Platform[]) {
    const { name, note } = kinds[platform];
    const file = join(work, name);
    const executable = makeExecutable(platform, { packer, base: node(platform), work });
    writeFileSync(file, executable, { mode: 0o755 });
    const ran = tryIt(platform, file, version);
    files.push({
      platform,
      name,
      bytes: executable.length,
      sha256: createHash('sha256').update(executable).digest('hex'),
      tested: ran !== undefined,
      note: `${ran ?? 'Not run before the release: no such machine was there.'} ${note}`.trimStart(),
    });
  }
  const versions = JSON.parse(
    execFileSync(packer, ['-p', 'JSON.stringify(process.versions)'], { encoding: 'utf8' }),
  );
  for (const platform of Object.keys(kinds)) rmSync(join(work, `node-${platform}`), { recursive: true });
  const list = join(work, 'clients.json');
  writeFileSync(list, `${JSON.stringify({ format: 1, version, files }, null, 2)}\n`);
  const signature = sign?.(list);
  await writeTar(
    out,
    [
      { name: 'clients.json', mode: 0o644, content: readFileSync(list) },
      ...files.map(({ name }) => ({ name, mode: 0o755, content: { path: join(work, name) } })),
      ...(signature ? [{ name: 'clients.json.sig', mode: 0o644, content: readFileSync(signature) }] : []),
    ],
    { seconds, gzip: true },
  );
  return versions;
}

interface Making {
  packer: string;
  base: string;
  work: string;
}

function makeExecutable(platform: Platform, { packer, base, work }: Making): Buffer {
  // Names go into the blob and are the same for everybody, so Node runs in the directory.
  const pack = (flag: string, more: object) => {
    const config = {
      main: 'andromeda.mjs',
      mainFormat: 'module',
      output: 'packed',
      disableExperimentalSEAWarning: true,
      useCodeCache: false,
      execArgv: ['--disable-warning=ExperimentalWarning'],
      // NODE_OPTIONS are for Node, and nobody who runs Andromeda should have to know that it is one.
      execArgvExtension: 'none',
      ...more,
    };
    writeFileSync(join(work, 'config.json'), JSON.stringify(config));
    execFileSync(packer, [flag, 'config.json'], { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
    return readFileSync(join(work, 'packed'));
  };
  const system = platform.slice(0, platform.indexOf('-'));
  if (system === 'linux') return injectBlob(readFileSync(base), pack('--experimental-sea-config', {}));
  if (system === 'win32') {
    writeFileSync(base, withoutSignature(readFileSync(base)));
    return withChecksum(pack('--build-sea', { executable: base }));
  }
  chmodSync(base, 0o755);
  const signed = signAdHoc(pack('--build-sea', { executable: base }), 'andromeda');
  const { said, found } = signedPages(signed);
  if (
    said.length !== found.length ||
    !said.every((hash, page) => hash.equals(found[page] ?? Buffer.alloc(0)))
  )
    throw new Error(`The signature of ${platform} does not fit its pages.`);
  return signed;
}

/** How it was run, as a sentence; undefined where it could not be. Throws when it does not answer as it should. */
function tryIt(platform: Platform, file: string, version: string): string | undefined {
  const runner = runnerFor(platform);
  if (!runner) return undefined;
  const [command = '', ...args] = [...runner, file, 'version'];
  const output = execFileSync(command, args, {
    encoding: 'utf8',
    timeout: 120_000,
    env: { HOME: '/nowhere' },
  });
  if (!output.startsWith(`andromeda ${version}\n`)) throw new Error(`${file} version says:\n${output}`);
  return runner.length === 0 ? '' : 'Run before the release under QEMU.';
}
