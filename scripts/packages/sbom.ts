/**
 * What a file of the release is made of, as CycloneDX 1.6 JSON: the packages of package-lock.json that are in it, the Node that
 * carries them with what that is made of, and Debian's packages. No time and no serial number, so that the same source makes
 * the same bytes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nameOf } from '../build/notices.ts';
import { packagesOfClient, packagesOfServer } from '../build/packages.ts';

interface Locked {
  version?: string;
  license?: string;
  resolved?: string;
  integrity?: string;
}

type Versions = Readonly<Record<string, string | undefined>>;

/** The server for a platform; `debs` are the packages of an image, as `NAME VERSION`. */
export async function billOfServer(
  root: string,
  platform: string,
  debs: readonly string[] = [],
): Promise<string> {
  return bill(root, await packagesOfServer(root, platform), process.versions, debs);
}

/** The clients, on a Node of these versions. */
export async function billOfClients(root: string, versions: Versions): Promise<string> {
  return bill(root, await packagesOfClient(root), versions, []);
}

function bill(
  root: string,
  paths: readonly string[],
  { node = '', ...inside }: Versions,
  debs: readonly string[],
): string {
  const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
  const { name, version, description } = read('package.json');
  const { packages } = read('package-lock.json') as { packages: Record<string, Locked> };
  const components = paths.map((path) => npmComponent(nameOf(path), packages[path] ?? {}));
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
