/** The tests' service and its gateway processes, each in one file: they start in a fraction of the time that their modules take. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build, type Plugin } from 'esbuild';

const root = join(import.meta.dirname, '../../..');
let bundled: Promise<string> | undefined;

/** The service's file. */
export function bundleService(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), 'andromeda-bundle-'));
  process.once('exit', () => rmSync(directory, { recursive: true }));
  // Gateway processes have accounts of their own.
  chmodSync(directory, 0o755);
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  const require = `import { createRequire as of } from 'node:module'; const require = of(import.meta.url);`;
  await build({
    absWorkingDir: root,
    entryPoints: { service: 'test/gateway/process/service.ts', gateway: 'src/main.ts' },
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    ...{ bundle: true, splitting: true, platform: 'node', target: 'node24', format: 'esm' },
    banner: { js: require },
    external: ['better-sqlite3', 'ssh2', 'pg-native'],
    plugins: [startsAt(join(directory, 'gateway.mjs'))],
    logLevel: 'warning',
  });
  return join(directory, 'service.mjs');
}

/** The program is where its source is, but for the file that gateway processes run. */
function startsAt(gateway: string): Plugin {
  return {
    name: 'starts-at',
    setup({ onLoad, onResolve }) {
      onLoad({ filter: /\/src\/lib\/packaging\.ts$/ }, ({ path }) => ({
        contents: readFileSync(path, 'utf8')
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(path)))
          .replace("join(codeDir, 'src/main.ts'), 'gateway'", `${JSON.stringify(gateway)}, 'gateway'`),
        loader: 'ts',
      }));
      onResolve({ filter: /\.ts$/ }, ({ kind, path, importer }) =>
        kind === 'dynamic-import' && !path.endsWith('/gateway/process/role.ts')
          ? { path: join(dirname(importer), path), external: true }
          : undefined,
      );
    },
  };
}
