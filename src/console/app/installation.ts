/** What the pages below "Installation" read. */
import type { components } from '../../api/generated/business.ts';
import { bodyOf, business } from './api.ts';
import { listAll, of, read } from './reads.ts';

type Schemas = components['schemas'];
export type Machine = Schemas['OperatorMachine'];
export type Person = Schemas['Person'];
export type Problem = Schemas['Problem'];
export type Installation = Schemas['Installation'];
export type LabPlan = Schemas['LabPlan'];
export type Lab = Schemas['Lab'];

/** What changes anything that operators see is announced by this. */
export const installationTopics = ['installation'] as const;

export const readProblems = () =>
  read(['operator', 'problems'], installationTopics, () => business.GET('/operator/problems').then(bodyOf));

export const readInstallation = () =>
  read(['operator', 'installation'], installationTopics, () =>
    business.GET('/operator/installation').then(bodyOf),
  );

export const readOperatorMachines = (clusterID: string) =>
  read(['operator', 'machines', clusterID], installationTopics, () =>
    business.GET('/operator/clusters/{clusterID}/machines', of({ clusterID })).then(bodyOf),
  );

/** So many pages of people, or the one with an address. */
export const readPeople = (email: string, pages: number) =>
  read(['operator', 'people', email, pages], installationTopics, () =>
    listAll<Person>(async (after) => {
      const query = { limit: 200, ...(email !== '' && { email }), ...after };
      const page = bodyOf(await business.GET('/operator/people', { params: { query } }));
      return { items: page.people, next: page.next_page_token };
    }, pages),
  );

export const readIdentities = (userID: string) =>
  read(['operator', 'identities', userID], installationTopics, () =>
    business.GET('/operator/people/{userID}/identities', of({ userID })).then(bodyOf),
  );

export const readOpenSessions = () =>
  read(['operator', 'sessions'], ['ssh-sessions'], () => business.GET('/operator/sessions').then(bodyOf));
