/** The PostgreSQL that the files of this folder use one after the other, where they are in one process. */
import { after, before, test as nodeTest, type TestContext } from 'node:test';
import pg from 'pg';
import { createPostgres, missingPostgres, type TestPostgres } from '../../support/postgres-server.ts';

const skip = missingPostgres() ?? false;
export let postgres: TestPostgres;
let users = 0;

/** A test that takes one. */
export function test(name: string, body: (t: TestContext) => Promise<void>): void {
  nodeTest(name, { skip }, body);
}

/** For the tests of a file: it is there until the last file that called this is done. */
export function usePostgres(): void {
  users += 1;
  before(async () => {
    if (!skip) postgres ??= await createPostgres();
  });
  after(async () => {
    users -= 1;
    if (users === 0) await postgres?.[Symbol.asyncDispose]();
  });
}

/** A connection of another program, until the test is over. */
export async function connect(t: TestContext, config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client(config);
  client.on('error', () => {});
  await client.connect();
  t.after(() => client.end());
  return client;
}
