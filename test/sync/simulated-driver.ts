/** The simulated driver with a login node that only remembers what it was told. */
import { setTimeout } from 'node:timers/promises';
import type { SimulatedSettings } from '../../src/domain/clusters/lab.ts';
import { createLogger } from '../../src/lib/log.ts';
import { createSimulatedSlurmDriver, type SimulatedSlurmOptions } from '../../src/sync/simulated/index.ts';

export async function start(
  dataDir: string,
  changes: Partial<SimulatedSettings> = {},
  more: Partial<SimulatedSlurmOptions> = {},
) {
  const settings: SimulatedSettings = { computeNodes: 3, gpusPerNode: 8, applyMs: 0, ...changes };
  const events: string[] = [];
  const names = (accounts: readonly { username: string }[]) =>
    accounts.map(({ username }) => username).join(',');
  const nodes: { running: boolean; setAccounts(next: readonly { username: string }[]): Promise<void> }[] = [];
  const driver = await createSimulatedSlurmDriver({
    name: 'Alpha',
    settings: async () => settings,
    dataDir,
    log: createLogger('silent'),
    async startLoginNode(_dataDir, accounts) {
      events.push(`start ${names(await accounts())}`);
      const node = {
        host: '127.0.0.1' as const,
        port: 1000 + nodes.length,
        hostKey: 'ssh-ed25519 AAAA',
        running: true,
        async setAccounts(next: readonly { username: string }[]) {
          events.push(`set ${names(next)}`);
        },
        setJobs() {},
        async stop() {
          events.push('stop');
          node.running = false;
          await setTimeout(20);
        },
      };
      nodes.push(node);
      return node;
    },
    ...more,
  });
  /** What happened since it was last asked. */
  const since = () => events.splice(0);
  return { driver, settings, since, nodes };
}
