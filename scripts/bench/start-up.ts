/**
 * From the start of the program until it serves: both APIs ready, the gateway greeting, the embedded issuer up. The
 * reference is a Node that does nothing. The first start finds neither data nor a compile cache, the second both. The
 * program is the executable, as people run it, where it was built.
 */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Scratch } from './scratch.ts';
import { configureService, root, type Service, serving } from './service.ts';
import type { Report, Row } from './table.ts';

const rounds = 5;
const aimSeconds = { first: 0.7, second: 0.4 };
const executable = join(root, 'dist/andromeda');

const lab = {
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: [{ email: 'ada@physics.example', role: 'owner', username: 'ada' }],
    },
  ],
  clusters: [
    {
      name: 'alpha',
      organization: 'physics',
      scheduler: 'sunk',
      simulated: { computeNodes: 2, gpusPerNode: 8 },
    },
  ],
};

export async function benchStartUp(scratch: Scratch): Promise<Report> {
  const isBuilt = existsSync(executable);
  let dir = '';
  let service: Service;
  const startAndStop = async () => {
    const began = performance.now();
    const env = { ...process.env, XDG_CACHE_HOME: join(dir, 'cache') };
    const [source = '', ...args] = service.command;
    const child = scratch.start([isBuilt ? executable : source, ...args], { env });
    const early = once(child, 'exit').then(() => Promise.reject(new Error('the service did not start')));
    await Promise.race([serving(service), early]);
    const seconds = (performance.now() - began) / 1000;
    early.catch(() => {});
    await scratch.end(child);
    return seconds;
  };
  const seen = await alternate(rounds, {
    node: async () => {
      const began = performance.now();
      await scratch.run([process.execPath, '-e', '0']);
      return (performance.now() - began) / 1000;
    },
    first: async () => {
      dir = scratch.folder('start');
      service = await configureService(dir, { lab });
      return startAndStop();
    },
    second: startAndStop,
  });
  const row = (name: 'first' | 'second'): Row => ({
    row: `start, ${name}`,
    ours: `${median(seen[name]).toFixed(2)} s`,
    reference: `${median(seen.node).toFixed(3)} s  node -e 0`,
    ratio: medianRatio(seen[name], seen.node),
    aim: `≤ ${aimSeconds[name]} s`,
    met: median(seen[name]) <= aimSeconds[name],
  });
  const notes = isBuilt ? [] : ['start: the sources, as there is no dist/andromeda; npm run build makes it.'];
  return { rows: [row('first'), row('second')], notes };
}
