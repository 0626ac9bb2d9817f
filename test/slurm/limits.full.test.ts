import './limits.test.ts';
