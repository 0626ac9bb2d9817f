import './found.test.ts';
