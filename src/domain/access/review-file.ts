/** An access review as a table for spreadsheets. */
import { csv } from '../csv.ts';
import { permissionCatalog, wayTo } from './permission.ts';
import { grantText, type Reviewed } from './review.ts';
import { wayText } from './ways-in.ts';

/** With a cluster's name: a line for each way in to it. */
export function reviewCsv(people: readonly Reviewed[], cluster: string | undefined): string {
  return csv(cluster === undefined ? linesOfAll(people) : linesOfCluster(people, cluster));
}

const facts = ['name', 'address', 'user name', 'role', 'member since', 'last sign-in'];

function factsOf(one: Reviewed): string[] {
  const { name, email, username, role, memberSince = '', signedInAt = '' } = one;
  return [name, email, username ?? '', role ?? 'not a member', memberSince, signedInAt];
}

function linesOfAll(people: readonly Reviewed[]): string[][] {
  if (people.every(({ grants }) => grants === undefined)) return [facts, ...people.map(factsOf)];
  const keys = permissionCatalog.map(({ key }) => key);
  const body = people.map((one) => {
    const { ends = {}, grants = [] } = one;
    const until = [
      ...Object.entries(ends).map((end) => end.join(' ')),
      ...grants.map((grant) => `${grantText(grant)} ${grant.expiresAt ?? 'no end date'}`),
    ];
    const reached = keys.map((key) => wayTo(key, one) ?? '');
    return [...factsOf(one), ...reached, grants.map(grantText).join('; '), until.join('; ')];
  });
  return [[...facts, ...keys, 'grants', 'until'], ...body];
}

function linesOfCluster(people: readonly Reviewed[], cluster: string): string[][] {
  const head = ['cluster', ...facts, 'account', 'opens', 'by', 'way', 'since', 'until'];
  const body = people.flatMap((one) =>
    (one.ways ?? []).map((way) => {
      const { opens, by, since, until = '' } = way;
      return [cluster, ...factsOf(one), one.account ?? '', opens, by, wayText(way), since, until];
    }),
  );
  return [head, ...body];
}
