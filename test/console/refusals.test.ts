import { test } from 'node:test';
import { noBrowser } from '../support/browser.ts';
import { everybody, useWalks } from './refusals.ts';

const walk = useWalks();
/** The others walk all pages in a full run. */
const walkers = ['eve', 'manages', 'reader'];
for (const one of everybody)
  test(`walking as ${one[0]} asks for nothing that is refused`, { skip: noBrowser }, () =>
    walk(one, walkers.includes(one[0])),
  );
