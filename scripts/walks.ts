/**
 * How many files of src a key passes, from `POST` to a shell: those of which a function runs, besides what runs when nothing
 * happens. The process has one service, with a simulated Slurm cluster, and counts its own calls.
 */
import { Session } from 'node:inspector/promises';
import { join, relative } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { alpha, physics, startTestApp } from '../test/support/app.ts';
import { keygen } from '../test/support/ssh-keys.ts';
import { sshPerson } from '../test/support/ssh-person.ts';

const root = join(import.meta.dirname, '..');

/** What happens after a commit is not part of the answer, nor is the API part of what the sync does. */
const apart = {
  answer: /^src\/(sync|gateway|service)\//,
  account: /^src\/(api|gateway)\//,
  login: /^src\/(api|sync)\//,
};

/** Files by what they are passed for. Takes some ten seconds. */
export async function countWalks(): Promise<Record<keyof typeof apart, string[]>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  /** Of the functions that ran since the last time. A module's own code ran when it was loaded. */
  const take = async (): Promise<string[]> => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => url.startsWith('file:'))
      .filter(({ functions }) =>
        functions.some(({ ranges: [range] }) => range && range.startOffset > 0 && range.count > 0),
      )
      .map(({ url }) => relative(root, fileURLToPath(url)))
      .filter((file) => file.startsWith('src/'));
  };

  await using app = await startTestApp({
    lab: { ...physics, clusters: (physics.clusters ?? []).filter(({ id }) => id === alpha) },
    sync: { intervalSeconds: 60 },
  });
  using bob = await sshPerson(app, 'bob');
  await wait(2_000);
  await take();
  await wait(3_000);
  const idle = new Set(await take());
  const passed = async (kind: keyof typeof apart) =>
    (await take()).filter((file) => !idle.has(file) && !apart[kind].test(file));

  const { status } = await app.write('/me/ssh-keys', {
    as: 'bob',
    body: { public_key: keygen('-t', 'ed25519').publicKey },
  });
  if (status !== 201) throw new Error(`the key was answered with ${status}`);
  const answer = await passed('answer');
  await wait(2_000);
  const account = await passed('account');
  const { err, out } = await bob.ssh([bob.target, 'echo in']);
  if (out !== 'in\n') throw new Error(err);
  const login = await passed('login');
  session.disconnect();
  return { answer, account, login };
}
