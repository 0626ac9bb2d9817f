import './rollout.test.ts';
