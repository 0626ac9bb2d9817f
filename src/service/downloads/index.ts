/**
 * What the service hands its people to work with: the portable client, which the program carries, and executables for their
 * machines, which are a release's files, unpacked below the data directory. Owns the page, the install
 * scripts and the files; all of it may be had without a token. What is not there is not offered.
 *
 *     the files of a release → store.ts ───────────────────────┐
 *     src/lib/packaging.ts (the portable client) → portable.ts ┴→ offer.ts → page.ts, scripts.ts
 *
 * `routes.ts` answers with them, at the Platform API, whose address people sign in with, and at the console.
 */
export type { Downloads } from './routes.ts';
export { createDownloads } from './routes.ts';
