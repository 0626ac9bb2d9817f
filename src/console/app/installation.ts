/** The pages below "Installation": their places, and what they read. */
import { queryOptions } from '@tanstack/react-query';
import type { components } from '../../api/generated/business.ts';
import { bodyOf, business } from './api.ts';

type Schemas = components['schemas'];
export type Machine = Schemas['OperatorMachine'];
export type Person = Schemas['Person'];
export type Problem = Schemas['Problem'];
export type Installation = Schemas['Installation'];
export type LabPlan = Schemas['LabPlan'];
export type Lab = Schemas['Lab'];

/** What changes anything that operators see is announced by this. */
export const installationTopics = ['installation'] as const;

/** In the order of their menu. */
export const installationPages = [
  { to: '/operator', name: 'Overview', hint: 'State of the clusters, what needs attention' },
  { to: '/operator/machines', name: 'Machines', hint: 'Admit, quarantine' },
  { to: '/operator/people', name: 'People and staff', hint: 'Accounts, identities, staff keys' },
  { to: '/operator/lab', name: 'Lab file', hint: 'Plan and apply' },
  { to: '/operator/service', name: 'Keys and backups', hint: 'Keys and backups of the service' },
] as const;

function read<T>(key: readonly unknown[], ask: () => Promise<T>) {
  return queryOptions({
    queryKey: ['operator', ...key],
    meta: { topics: installationTopics },
    queryFn: ask,
  });
}

export const readProblems = () =>
  read(['problems'], async () => bodyOf(await business.GET('/operator/problems')).problems);

export const readInstallation = () =>
  read(['installation'], async () => bodyOf(await business.GET('/operator/installation')));

export const readOperatorMachines = (clusterID: string) =>
  read(['machines', clusterID], async () => {
    const params = { path: { clusterID } };
    return bodyOf(await business.GET('/operator/clusters/{clusterID}/machines', { params })).machines;
  });

const peopleAtOnce = 200;

/** So many pages of people, or the one with an address. */
export const readPeople = (email: string, pages: number) =>
  read(['people', email, pages], async () => {
    const people: Person[] = [];
    let after: string | undefined;
    for (let page = 0; page < pages; page += 1) {
      const query = {
        limit: peopleAtOnce,
        ...(email !== '' && { email }),
        ...(after !== undefined && { after }),
      };
      const answer = bodyOf(await business.GET('/operator/people', { params: { query } }));
      people.push(...answer.people);
      after = answer.next_page_token;
      if (after === undefined) break;
    }
    return { people, hasMore: after !== undefined };
  });

export const readIdentities = (userID: string) =>
  read(['identities', userID], async () => {
    const params = { path: { userID } };
    return bodyOf(await business.GET('/operator/people/{userID}/identities', { params }));
  });
