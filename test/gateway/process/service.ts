/**
 * A service of a gateway and a database in a process of its own, which tests can kill: `node service.ts FILE`, a JSON of
 * ServiceOrder. Who may log in is what `ways` says; records go through the store as they always do. It prints its state
 * on stdout, a line of JSON for each question on stdin.
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Lab } from '../../../src/domain/clusters/lab.ts';
import type { Route } from '../../../src/gateway/ssh/decision.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { loadSshKey } from '../../../src/lib/ssh/public-key.ts';
import { openGateway, startGateway } from '../../../src/service/compose/gateway.ts';
import { joinPeers } from '../../../src/service/compose/peers/index.ts';
import { startSessionRecords } from '../../../src/service/compose/session-records.ts';
import { readConfig } from '../../../src/service/config/index.ts';
import { createInstallation } from '../../../src/store/data-dir/lab.ts';
import { openStore } from '../../../src/store/data-dir/open-store.ts';

export interface ServiceOrder {
  configFile: string;
  keys: { host: string; client: string };
  loginName: string;
  userKey: string;
  loginNode: Route['loginNode'];
  /** What is in the database; from here, so that a start loads nothing of the tests'. */
  installation: Lab;
}

/** The second argument: the build that gateway processes are taken for. */
const build = process.argv[3];

const order = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as ServiceOrder;
const config = readConfig(order.configFile);
const log = createLogger('debug');
const store = await openStore(config.dataDir);
await createInstallation(store, order.installation, 'test');
const { id: userId } = await store.read.selectFrom('users').select('id').limit(1).executeTakeFirstOrThrow();
const route: Route = {
  clusterId: order.loginName.slice(0, 36),
  userId,
  username: 'root',
  keyId: 'ssh_key_1',
  shell: '/bin/bash',
  loginNode: order.loginNode,
};
let refusal: string | undefined;
let isUndecided = false;
/** How many logins were asked about. */
let asked = 0;
const records = startSessionRecords(store, log);
const peers = await joinPeers(config, store, log);
const gateway = await openGateway(config, {
  store,
  peers,
  gatewayKeys: {
    hostKeys: [loadSshKey(order.keys.host).privateKey],
    clientKeys: [loadSshKey(order.keys.client).privateKey],
  },
  records,
  authorize: async ({ loginName, publicKey }, openOn) => {
    if (!openOn) asked += 1;
    if (isUndecided) throw new Error('not decided, for the test');
    const isKnown = loginName === order.loginName && order.userKey.startsWith(publicKey);
    if (!isKnown) return { allowed: false, reason: 'unknown', message: '', disclose: false };
    return refusal === undefined
      ? { allowed: true, route }
      : { allowed: false, reason: 'refused', message: refusal, disclose: true };
  },
  log,
  build,
});
await startGateway(gateway, { config, store, log, now: Date.now });
const answer = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`);
answer('ready');

const questions: Record<string, (argument: string) => Promise<unknown>> = {
  sessions: () => gateway.sessions(),
  async count() {
    return gateway.count();
  },
  async unreached() {
    return gateway.unreached;
  },
  async fault() {
    return gateway.fault ?? null;
  },
  async asked() {
    return asked;
  },
  async undecided() {
    isUndecided = true;
    await gateway.recheck();
    return true;
  },
  async refuse(text) {
    refusal = text;
    const started = performance.now();
    await gateway.recheck();
    return performance.now() - started;
  },
  async allow() {
    [refusal, isUndecided] = [undefined, false];
    return true;
  },
  close: async (text) => gateway.close({}, 'closed by an operator', text),
  entries: () =>
    store.read
      .selectFrom('audit_entries')
      .select(['operation', 'target', 'reason', 'details'])
      .where('operation', 'like', 'ssh.%')
      .orderBy('seq')
      .execute(),
};
const stop = async (left: boolean) => {
  await (left ? gateway.leave('all') : gateway.stop());
  await records.stop();
  await store.close();
  process.exit(0);
};
process.on('SIGTERM', () => void stop(false));
for (const signal of ['SIGHUP', 'SIGUSR2']) process.on(signal, () => void stop(true));
for await (const line of createInterface({ input: process.stdin })) {
  const [, name = '', argument = ''] = /^(\w+) ?(.*)$/.exec(line) ?? [];
  answer(await questions[name]?.(argument));
}
