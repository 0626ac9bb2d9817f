/**
 * Direct logins: while a lab moves in, people whom the gateway has not met yet log in to the login nodes with their own
 * keys as before, until a date. The list of them only shrinks, and hosts close it at the date by themselves.
 */
import { invalidRequest } from '../error.ts';

export interface SlurmDirect {
  /** The last day, in UTC: `2027-01-31`. */
  until: string;
  /** Accounts of the site, such as one that copies backups: they keep their keys after that day. */
  services?: string[];
}

/** The names of a cluster. */
export interface DirectLogins extends Required<SlurmDirect> {
  people: string[];
  /** Those of `people` who have never registered a key here; the others have yet to log in by the gateway. */
  keyless: string[];
}

const dayMs = 86_400_000;
export const toDay = (ms: number) => new Date(ms).toISOString().slice(0, 10);

export function checkDirect(cluster: string, { until, services = [] }: SlurmDirect): void {
  const ms = /^\d{4}-\d\d-\d\d$/.test(until) ? Date.parse(until) : Number.NaN;
  const given = JSON.stringify(until);
  if (Number.isNaN(ms) || toDay(ms) !== until)
    throw invalidRequest(
      `Cluster ${cluster}: direct.until is ${given}, which is no date such as 2027-01-31.`,
    );
  for (const name of services)
    if (name === 'root' || !/^[A-Za-z_][A-Za-z0-9._-]{0,31}$/.test(name))
      throw invalidRequest(
        `Cluster ${cluster}: direct.services names ${JSON.stringify(name)}, which cannot be a service.`,
      );
}

/** Throws `invalid_request` for a new date that is not within a year. One that was set before stays valid when it has passed. */
export function checkDirectDate(
  { name, slurm }: { name: string; slurm?: { direct?: SlurmDirect } },
  before: SlurmDirect | undefined,
  now: number,
): void {
  const until = slurm?.direct?.until ?? before?.until;
  if (until === undefined || until === before?.until) return;
  const fault =
    until < toDay(now)
      ? 'which has passed'
      : 'more than a year away: take an earlier day, it can be moved later';
  if (until < toDay(now) || until > toDay(now + 366 * dayMs))
    throw invalidRequest(`Cluster ${name}: direct.until is ${until}, ${fault}.`);
}

/** The people who are left, as both the command line and the console list them. */
export function directPeople({ people, keyless }: Pick<DirectLogins, 'people' | 'keyless'>): string[] {
  return people.map((name) => (keyless.includes(name) ? `${name} (no key yet)` : name));
}

export function isDirectOpen(direct: SlurmDirect | undefined, now: number): boolean {
  return direct !== undefined && toDay(now) <= direct.until;
}

/** What a plan says about the section; undefined where it stays as it is. */
export function directChange(before: SlurmDirect | undefined, wanted: SlurmDirect | undefined) {
  if (JSON.stringify(before) === JSON.stringify(wanted)) return undefined;
  if (!wanted) return 'direct logins end';
  const services = wanted.services?.length ? `, ${wanted.services.join(', ')} for good` : '';
  return `direct logins until ${wanted.until} of people who have not come through the gateway yet, also with keys revoked here${services}`;
}
