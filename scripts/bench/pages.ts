/**
 * The console's longest lists in a real browser whose processor is slowed down to a quarter: how long a page takes from the click to its
 * last row, the bytes of its reads as they go over the wire, and those that one change makes it read.
 */
import type { CDPSession } from 'playwright-core';
import type { Lab } from '../../src/domain/clusters/lab.ts';
import type { Store } from '../../src/store/engine/index.ts';
import { findPersonByEmail } from '../../src/store/people/people.ts';
import { startConsoleApp } from '../../test/console/harness.ts';
import { openSite, show } from '../../test/console/page.ts';
import { eventually } from '../../test/support/app.ts';
import { noBrowser } from '../../test/support/browser.ts';
import { median } from './rounds.ts';
import type { Report, Row } from './table.ts';

const members = 1_000;
const clusters = 50;
const rounds = 5;
const slowdown = 4;
const aims = { seconds: 1, bytes: 100_000, changeBytes: 5_000 };
const quietMs = 500;

const lab: Lab = {
  users: [{ email: 'ada@physics.example', staff: ['staff.operate'] }],
  organizations: [
    {
      slug: 'physics',
      name: 'Physics',
      members: Array.from({ length: members }, (_, index) =>
        index === 0
          ? { email: 'ada@physics.example', role: 'owner' as const, username: 'ada' }
          : {
              email: `person-${index}@physics.example`,
              role: 'member' as const,
              username: `person-${index}`,
              permissions: ['clusters.read', 'clusters.ssh'],
            },
      ),
    },
  ],
  clusters: Array.from({ length: clusters }, (_, index) => ({
    name: `cluster-${index}`,
    organization: 'physics',
    scheduler: 'kubernetes' as const,
    simulated: { computeNodes: 8, gpusPerNode: 8 },
  })),
};

/** What is opened, its last row, and one change of what it shows. */
const pages = [
  { path: '/members', what: `${members} members`, there: 'table tbody tr', change: renameMember },
  { path: '/clusters', what: `${clusters} clusters`, there: '.cards .panel .figure', change: changeCluster },
];

/** Of one page: from the click to what it shows, in seconds, and bytes of its reads. */
interface Reading {
  seconds: number[];
  bytes: number[];
  changeBytes: number[];
}

export async function benchPages(): Promise<Report> {
  if (noBrowser) return { rows: [], notes: [`pages is left out: ${noBrowser}.`] };
  await using app = await startConsoleApp({ lab });
  await using site = await openSite(app);
  const rows: Row[] = [];
  await site.as('ada', async (page) => {
    const network = await page.context().newCDPSession(page);
    await network.send('Network.enable');
    await network.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
    const count = countBytes(network);
    for (const { path, what, there, change } of pages) {
      const seen: Reading = { seconds: [], bytes: [], changeBytes: [] };
      for (let round = 0; round < rounds; round += 1) {
        await page.goto(`${app.url}/keys`);
        await page.getByText('Live', { exact: true }).waitFor();
        await quiet(count);
        const before = count.bytes;
        const began = performance.now();
        await show(page, path);
        await page.locator(there).last().waitFor();
        seen.seconds.push((performance.now() - began) / 1_000);
        await quiet(count);
        seen.bytes.push(count.bytes - before);
        const unchanged = count.bytes;
        await change(app.test.app.store, round);
        await quiet(count);
        seen.changeBytes.push(count.bytes - unchanged);
      }
      rows.push(...rowsOf(what, seen));
    }
  });
  return { rows, notes: [] };
}

async function renameMember(store: Store, round: number): Promise<void> {
  const { id = '' } = (await findPersonByEmail(store.read, `person-${round + 1}@physics.example`)) ?? {};
  await store.write(async (tx) => {
    const renamed = tx.db.updateTable('users').set({ display_name: `Renamed ${round}` });
    await renamed.where('id', '=', id).execute();
    tx.changed({ kind: 'person', userId: id });
  });
}

async function changeCluster(store: Store, round: number): Promise<void> {
  const all = await store.read.selectFrom('clusters').select('id').execute();
  await store.write(async (tx) => tx.changed({ kind: 'cluster', clusterId: all[round]?.id ?? '' }));
}

interface Counted {
  bytes: number;
  at: number;
}

/** The bytes of all replies of the APIs since, with their headers. */
function countBytes(network: CDPSession): Counted {
  const counted = { bytes: 0, at: performance.now() };
  const reads = new Set<string>();
  network.on('Network.requestWillBeSent', ({ requestId, request }) => {
    if (new URL(request.url).pathname.startsWith('/api/')) reads.add(requestId);
    counted.at = performance.now();
  });
  network.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    if (reads.has(requestId)) counted.bytes += encodedDataLength;
    counted.at = performance.now();
  });
  return counted;
}

/** Resolves when nothing was read for a while. */
async function quiet(counted: Counted): Promise<void> {
  counted.at = performance.now();
  await eventually(
    async () => performance.now() - counted.at,
    (ms) => ms > quietMs,
  );
}

function rowsOf(what: string, { seconds, bytes, changeBytes }: Reading): Row[] {
  const row = (name: string, text: string, ratio: number, aim: string): Row => {
    return { row: name, ours: text, reference: 'the aim', ratio, aim, met: ratio <= 1 };
  };
  const kB = (values: number[]) => `${(median(values) / 1_000).toFixed(1)} kB`;
  return [
    row(
      `${what}, from the click`,
      `${median(seconds).toFixed(2)} s`,
      median(seconds) / aims.seconds,
      '≤ 1 s',
    ),
    row('  bytes read', kB(bytes), median(bytes) / aims.bytes, '≤ 100 kB'),
    row('  bytes of a change', kB(changeBytes), median(changeBytes) / aims.changeBytes, '≤ 5 kB'),
  ];
}
