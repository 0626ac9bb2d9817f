/** The lists of operations are those of the documents: the compiler holds what these types say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as businessOperations from '../../src/api/business/index.ts';
import type { BusinessDeps } from '../../src/api/business/operation.ts';
import type { operations as BusinessApi } from '../../src/api/generated/business.ts';
import type { operations as PlatformApi } from '../../src/api/generated/platform.ts';
import { loadDocument, operationsOf } from '../../src/api/http/document.ts';
import type { PlatformDeps } from '../../src/api/platform/access.ts';
import * as platformOperations from '../../src/api/platform/index.ts';
import type { OperationOf, OperationType } from '../../src/domain/operation.ts';

/** Every operation of a document; `Alias` are those that another one answers. */
type OperationsOf<Api, Deps, Alias extends keyof Api = never> = {
  [Id in Exclude<keyof Api, Alias>]: OperationOf<Api[Id] & OperationType, Deps>;
};
type Business = OperationsOf<BusinessApi, BusinessDeps, 'registerSshKeyForOrganization'>;
type Platform = OperationsOf<PlatformApi, PlatformDeps>;

test('a missing, a misspelt or a wrong operation is a type error (tsc --noEmit holds it)', () => {
  const { getMe, ...others } = businessOperations;
  // @ts-expect-error an operation of the document is missing
  others satisfies Business;
  // @ts-expect-error there is no operation of that name
  ({ ...others, getMee: getMe }) satisfies Business;
  // @ts-expect-error it is the other way to call registerSshKey, which answers it
  ({ ...businessOperations, registerSshKeyForOrganization: getMe }) satisfies Business;
  // @ts-expect-error the reply is another one
  ({ ...businessOperations, getMe: async () => ({ user: 7 }) }) satisfies Business;
  // @ts-expect-error a command says what became of it
  ({ ...businessOperations, setMemberRole: businessOperations.getMe }) satisfies Business;
  const command = async () => ({ commandId: '', replayed: true });
  // @ts-expect-error a read has no command to speak of
  ({ ...platformOperations, getCluster: command }) satisfies Platform;
  ({ ...businessOperations }) satisfies Business;
  ({ ...platformOperations }) satisfies Platform;
});

for (const [api, list] of [
  ['business', businessOperations],
  ['platform', platformOperations],
] as const) {
  test(`the ${api} API has a function for every operation of its document, and no other`, () => {
    const answering = operationsOf(loadDocument(api)).map(({ answeredBy }) => answeredBy);
    assert.deepEqual(Object.keys(list).sort(), [...new Set(answering)].sort());
  });
}
