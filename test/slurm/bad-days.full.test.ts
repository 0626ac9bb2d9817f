import './bad-days.test.ts';
