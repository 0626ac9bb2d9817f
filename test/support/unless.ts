/** Tests that something keeps from running here. */
import { type TestContext, test } from 'node:test';

/** `test`, as it is in a file of which all need the same: the reason why they are skipped, or false. */
export const unless =
  (skip: string | false) =>
  (title: string, body: (t: TestContext) => void | Promise<void>): void =>
    void test(title, { skip }, body);

export const testAsRoot = unless(process.getuid?.() !== 0 && 'needs root');
