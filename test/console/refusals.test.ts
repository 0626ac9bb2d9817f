import { test } from './page.ts';
import { everybody, useWalks } from './refusals.ts';

const walk = useWalks();
/** The others walk all pages in a full run. */
const walkers = ['eve', 'manages', 'reader'];
for (const one of everybody)
  test(`walking as ${one[0]} asks for nothing that is refused`, () => walk(one, walkers.includes(one[0])));
