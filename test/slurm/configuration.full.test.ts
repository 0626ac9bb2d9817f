import './configuration.test.ts';
