import './adopted-host.test.ts';
