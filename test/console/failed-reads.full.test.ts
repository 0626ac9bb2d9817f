import { useFailures } from './failed-reads.ts';
import { test } from './page.ts';

const fail = useFailures();
test('on each page each read that fails is said', () => fail('all'));
