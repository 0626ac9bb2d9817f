/**
 * What the service hands its people to work with: the portable client, which the program carries, and executables for their
 * machines, which lie below the data directory once `andromeda clients add` put them there. Owns the page, the install
 * scripts and the files; all of it may be had without a token. What is not there is not offered.
 *
 *     andromeda clients add FILE → release-file.ts (unpack, check) → store.ts (take its place) ┐
 *     src/lib/packaging.ts (the portable client) → portable.ts ────────────────────────────────┴→ offer.ts → page.ts, scripts.ts
 *
 * `routes.ts` answers with them, at the Platform API, whose address people sign in with, and at the console.
 */
export type { Downloads } from './routes.ts';
export { createDownloads } from './routes.ts';
