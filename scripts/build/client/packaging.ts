/** Stands in for src/lib/packaging.ts in the portable client: of all that is there, the command line asks for this. */

/** Put in by client.ts. */
declare const buildStamp: { commit: string; date: string };
export const build: { commit: string; date: string } | undefined = buildStamp;

/** Put in by client.ts. */
declare const noticesText: string;
export const notices = (): string => noticesText;

export function exitArguments(status: number): string[] {
  return ['-e', `process.exitCode = ${status}`];
}
