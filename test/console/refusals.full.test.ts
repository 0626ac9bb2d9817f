import { test } from './page.ts';
import { everybody, useWalks } from './refusals.ts';

const walk = useWalks();
for (const one of everybody)
  test(`walking all pages as ${one[0]} asks for nothing that is refused`, () => walk(one, true));
