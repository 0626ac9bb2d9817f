/**
 * `sbom.ts`: writes what the executable is made of to standard output, as CycloneDX 1.6 JSON: the packages of
 * package-lock.json that are no development tools, and the Node that carries them with what that is made of. No time
 * and no serial number, so that the same source makes the same bytes.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Locked {
  version?: string;
  license?: string;
  resolved?: string;
  integrity?: string;
  dev?: boolean;
}

const root = join(import.meta.dirname, '../..');
const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));
const { name, version, description } = read('package.json');
const lock = read('package-lock.json') as { packages: Record<string, Locked> };

const packages = Object.entries(lock.packages)
  // What an optional package needs is listed also where it was not installed.
  .filter(([path, { dev }]) => path !== '' && !dev && existsSync(join(root, path)))
  .map(([path, locked]) => npmComponent(path.slice(path.lastIndexOf('node_modules/') + 13), locked));
const unique = new Map(packages.map((one) => [one['bom-ref'], one]));
const { node, ...inside } = process.versions;

const self = `pkg:generic/${name}@${version}`;
const bom = {
  $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.6',
  version: 1,
  metadata: { component: { type: 'application', 'bom-ref': self, name, version, description } },
  components: [
    ...[...unique.values()].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)),
    {
      type: 'platform',
      'bom-ref': `pkg:generic/node@${node}`,
      name: 'node',
      version: node,
      purl: `pkg:generic/node@${node}`,
      components: Object.entries(inside)
        .filter(([, inner]) => inner)
        .map(([part, inner]) => ({
          type: 'library',
          'bom-ref': `pkg:generic/${part}@${inner}#node`,
          name: part,
          version: inner,
          purl: `pkg:generic/${part}@${inner}`,
        })),
    },
  ],
};
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);

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
