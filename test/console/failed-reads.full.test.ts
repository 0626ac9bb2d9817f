import { test } from 'node:test';
import { noBrowser } from '../support/browser.ts';
import { useFailures } from './failed-reads.ts';

const fail = useFailures();
test('on each page each read that fails is said', { skip: noBrowser }, () => fail('all'));
