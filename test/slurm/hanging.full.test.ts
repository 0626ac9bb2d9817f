import './hanging.test.ts';
