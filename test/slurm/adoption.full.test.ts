import './adoption.test.ts';
