/**
 * What a file of the release is made of, as CycloneDX 1.6 JSON: the packages of package-lock.json that are in it, the Node that
 * carries them with what that is made of, and Debian's packages. No time and no serial number, so that the same source makes
 * the same bytes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

interface Locked {
  version?: string;
  license?: string;
  resolved?: string;
  integrity?: string;
  dev?: boolean;
}

type Versions = Readonly<Record<string, string | undefined>>;

/** The server for a platform; `debs` are the packages of an image, as `NAME VERSION`. */
export function billOfServer(root: string, platform: string, debs: readonly string[] = []): string {
  const keyring = '@napi-rs/keyring-linux-';
  const isIn = (path: string, { dev }: Locked) => {
    if (path === '' || dev) return false;
    if (path.includes(keyring)) return path.endsWith(`${keyring}${platform.slice('linux-'.length)}-gnu`);
    // What an optional package needs is listed also where it was not installed.
    return existsSync(join(root, path));
  };
  return bill(root, isIn, process.versions, debs);
}

/** The clients, on a Node of these versions. */
export async function billOfClients(root: string, versions: Versions): Promise<string> {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['src/cli/portable.ts'],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    preserveSymlinks: true,
    external: ['@napi-rs/keyring'],
    logLevel: 'error',
  });
  const used = new Set(
    Object.keys(metafile.inputs).flatMap(
      (file) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? [],
    ),
  );
  return bill(root, (path) => used.has(path), versions, []);
}

function bill(
  root: string,
  isIn: (path: string, locked: Locked) => boolean,
  { node = '', ...inside }: Versions,
  debs: readonly string[],
): string {
  const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
  const { name, version, description } = read('package.json');
  const { packages } = read('package-lock.json') as { packages: Record<string, Locked> };
  const components = Object.entries(packages)
    .filter(([path, locked]) => isIn(path, locked))
    .map(([path, locked]) => npmComponent(path.slice(path.lastIndexOf('node_modules/') + 13), locked));
  const unique = new Map(components.map((one) => [one['bom-ref'], one]));
  const self = `pkg:generic/${name}@${version}`;
  const result = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': self, name, version, description } },
    components: [
      ...[...unique.values()].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)),
      {
        ...generic('platform', 'node', node),
        components: Object.entries(inside).flatMap(([part, inner]) =>
          inner ? [generic('library', part, inner, '#node')] : [],
        ),
      },
      ...debs.map(debComponent),
    ],
  };
  return `${JSON.stringify(result, null, 2)}\n`;
}

function generic(type: string, name: string, version: string, reference = '') {
  const purl = `pkg:generic/${name}@${version}`;
  return { type, 'bom-ref': `${purl}${reference}`, name, version, purl };
}

function debComponent(deb: string) {
  const [name = '', version = ''] = deb.split(' ');
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
  return { type: 'library', 'bom-ref': purl, name, version, purl };
}

function npmComponent(packageName: string, { version = '', license, resolved, integrity }: Locked) {
  const purl = `pkg:npm/${packageName.replace('@', '%40')}@${version}`;
  const [algorithm, digest = ''] = integrity?.split('-') ?? [];
  return {
    type: 'library',
    'bom-ref': purl,
    name: packageName,
    version,
    purl,
    ...(license && {
      licenses: [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }],
    }),
    ...(algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
    ...(resolved && { externalReferences: [{ type: 'distribution', url: resolved }] }),
  };
}
