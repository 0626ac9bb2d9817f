/**
 * The built-in issuer: sign-ins with a password, each a device's from its code to its tokens, against the hash of the password alone;
 * one after the other, since an account takes no two passwords at once; and refreshes. Its callers are in the same process, so that a figure says at least how fast it is.
 */
import { hashPassword, verifyPassword } from '../../src/api/identity/password.ts';
import { setPassword } from '../../src/store/people/identities.ts';
import { ada, refresh, signIn, startHarness } from '../../test/identity/issuer/harness.ts';
import { alternate, median, medianRatio } from './rounds.ts';
import type { Report } from './table.ts';

const rounds = 5;
const warming = 1;
const seconds = 2;
/** Terminals that refresh. */
const atOnce = 8;
const aims = { refreshes: 240, ofHash: 0.9 };

export async function benchIssuer(): Promise<Report> {
  await using harness = await startHarness();
  const { url, store } = harness;
  const hash = await hashPassword(ada.password);
  await store.write((tx) => setPassword(tx, { userId: ada.id, hash }));
  const terminals: Record<string, unknown>[] = [];
  for (let index = 0; index < atOnce; index += 1) terminals.push(await signIn(url));
  const asker = { source: ada.email, isKnown: true };
  const seen = await alternate(warming + rounds, {
    logins: () => perSecond(1, () => signIn(url)),
    hashes: () => perSecond(1, () => verifyPassword(ada.password, hash, asker)),
    refreshes: () =>
      perSecond(atOnce, async (index) => {
        const { status, body } = await refresh(url, terminals[index]?.['refresh_token']);
        if (status !== 200) throw new Error(`a refresh was answered with ${status}`);
        terminals[index] = body as Record<string, unknown>;
      }),
  });
  const [logins, hashes, refreshes] = [seen.logins, seen.hashes, seen.refreshes].map((all) =>
    all.slice(warming),
  ) as [number[], number[], number[]];
  const ofHash = medianRatio(logins, hashes);
  return {
    rows: [
      {
        row: 'sign-ins with a password',
        ours: `${median(logins).toFixed(1)}/s`,
        reference: `${median(hashes).toFixed(1)}/s  the hash alone`,
        ratio: ofHash,
        aim: `≥ ${aims.ofHash}`,
        met: ofHash >= aims.ofHash,
      },
      {
        row: 'refreshes',
        ours: `${median(refreshes).toFixed(0)}/s`,
        reference: `${median(hashes).toFixed(1)}/s  the hash alone`,
        ratio: medianRatio(refreshes, hashes),
        aim: `≥ ${aims.refreshes}/s`,
        met: median(refreshes) >= aims.refreshes,
      },
    ],
    notes: [],
  };
}

async function perSecond(count: number, step: (index: number) => Promise<unknown>): Promise<number> {
  let steps = 0;
  const began = performance.now();
  const one = async (index: number) => {
    while (performance.now() - began < seconds * 1000) {
      await step(index);
      steps += 1;
    }
  };
  await Promise.all(Array.from({ length: count }, (_, index) => one(index)));
  return steps / ((performance.now() - began) / 1000);
}
