/** The second half of the checks, for each cluster: whether the person may log in, and whether a login works. */
import { visibleLine } from '../../domain/text.ts';
import { readBanner } from '../../lib/ssh-banner.ts';
import type { EnvironmentOptions } from '../environment.ts';
import { type ClusterUse, commandFor, readUses, rowsOf } from '../everyday/access.ts';
import { type Cluster, unless } from '../everyday/caller.ts';
import { findIdentityFile } from '../everyday/keys.ts';
import {
  isReachable,
  readSshAccess,
  type SshAccess,
  type SshHost,
  sshArguments,
} from '../everyday/ssh-host.ts';
import { createClient, type PlatformReader } from '../net/api.ts';
import { askProgram, type Finding, findingsAbout, sentenceOf } from './finding.ts';
import { hasPassphrase } from './ssh-setup.ts';

const onAccess = findingsAbout('access');
const onGateway = findingsAbout('gateway');
const onSsh = findingsAbout('ssh');

/** Limit, because clusters are checked one at a time; a person with more of them names one. */
const mostClusters = 20;
const bannerMs = 15_000;
const loginMs = 60_000;
const mostLines = 4;
/** sun_path, less the suffix that ssh adds while it listens and the NUL. */
const longestControlPath = (process.platform === 'linux' ? 108 : 104) - 18;
/** Options for a login without prompts and without a connection that persists. */
const quietly = [
  'BatchMode=yes',
  'ConnectTimeout=15',
  'LogLevel=INFO',
  'ControlPersist=no',
  'RequestTTY=no',
].flatMap((option) => ['-o', option]);

/** The person's use of all clusters, or of `wanted`; a finding with the reason if it cannot be read. */
export async function findUses(
  wanted: string | undefined,
  options: EnvironmentOptions,
): Promise<ClusterUse[] | Finding> {
  try {
    return await readUses(createClient(options, 'andromeda doctor').api, wanted);
  } catch (error) {
    return onAccess.wrong(
      sentenceOf(error),
      wanted === undefined
        ? 'Try again; if it stays, tell the operator of the service.'
        : 'Name a cluster that `andromeda access` prints, or try again.',
    );
  }
}

export async function* checkClusters(
  uses: ClusterUse[] | Finding,
  isWanted: boolean,
  options: EnvironmentOptions,
): AsyncGenerator<Finding> {
  if (!Array.isArray(uses)) return yield uses;
  const { platform } = createClient(options, 'andromeda doctor');
  if (uses.length === 0)
    yield onAccess.warn(
      'There is no cluster that you can see or use yet.',
      '`andromeda access request clusters.read clusters.ssh` asks an owner or admin of your organization.',
    );
  const addresses = new Map<string, { cluster: Cluster; access: SshAccess }>();
  for (const use of uses.slice(0, mostClusters)) {
    yield* checkUse(use, isWanted);
    const { cluster_id: id, cluster_name: name, organization_id: organizationId } = use;
    const cluster = { id, name, organization: { id: organizationId, slug: organizationId } };
    const access = use.ssh.granted ? yield* checkAddress(platform, cluster) : undefined;
    if (access) addresses.set(`${access.hostname} ${access.port} ${access.host_key}`, { cluster, access });
  }
  if (uses.length > mostClusters)
    yield onAccess.ok(
      `${uses.length - mostClusters} more clusters; \`andromeda doctor <cluster>\` looks at one.`,
    );
  for (const { cluster, access } of addresses.values()) {
    const login = access.ready ? await tryLogin({ cluster, access }) : undefined;
    // A network fault concerns every program, and is reported before ssh's own error.
    if (login?.verdict !== 'ok') yield await checkGateway(access);
    if (login) yield login;
  }
}

/** Reports the uses of a cluster. A missing one is wrong only if the person named the cluster and has no other use of it. */
function* checkUse(cluster: ClusterUse, isWanted: boolean): Generator<Finding> {
  const isNeither = !cluster.ssh.granted && !cluster.kubernetes.granted;
  for (const row of rowsOf(cluster)) {
    const { name, use } = row;
    if (use.state === 'none') continue;
    const message = visibleLine(use.message);
    const text = message.startsWith(name) ? message : `${name}: ${message}`;
    const command = commandFor(row);
    if (use.state === 'ready' || (!use.granted && !(isNeither && isWanted))) yield onAccess.ok(text);
    // The fix for missing keys was printed by the key check.
    else if (command === undefined || use.reason === 'no_keys') yield onAccess.wrong(text);
    else yield onAccess.wrong(text, `\`${command}\``);
  }
}

async function* checkAddress(
  platform: PlatformReader,
  cluster: Cluster,
): AsyncGenerator<Finding, SshAccess | undefined> {
  try {
    const access = await unless(readSshAccess(platform, cluster), 'forbidden', 'notFound');
    return access && isReachable({ cluster, access }) ? access : undefined;
  } catch (error) {
    yield onAccess.wrong(sentenceOf(error), 'Tell the operator of the service.');
    return undefined;
  }
}

async function checkGateway({ hostname, port }: SshAccess): Promise<Finding> {
  const at = `${hostname} port ${port}`;
  const answer = await readBanner(hostname, port, bannerMs);
  if ('fault' in answer)
    return onGateway.wrong(
      `${at}: ${answer.fault}.`,
      `Is this machine in a network that may reach ${at} (firewall, VPN)? Ask the operator of the service.`,
    );
  if (!answer.banner.startsWith('SSH-2.0-'))
    return onGateway.wrong(
      `${at} does not speak SSH: '${visibleLine(answer.banner)}'.`,
      'Something else answers at that address; ask the operator of the service.',
    );
  return onGateway.ok(`${at} answers.`);
}

/** Tries a login with the person's own configuration, as `andromeda ssh` would, and interprets the client's output. */
async function tryLogin(host: SshHost): Promise<Finding | undefined> {
  const { name } = host.cluster;
  const fix = `Your settings are in ~/.ssh/config; \`andromeda ssh ${name} -v\` shows each step.`;
  try {
    const args = await sshArguments(host);
    const asked = await askProgram('ssh', ['-G', ...args], 10_000);
    if (asked.status === undefined) return undefined;
    if (asked.status !== 0) return onSsh.wrong(`ssh cannot use its configuration: ${saidBy(asked)}`, fix);
    const [, path = ''] = /^controlpath (.*?)\r?$/m.exec(asked.stdout) ?? [];
    if (!/^controlmaster false\b/m.test(asked.stdout) && Buffer.byteLength(path) > longestControlPath)
      return onSsh.wrong(
        `ControlPath is ${path}, and has room for ${longestControlPath} bytes.`,
        'Make it shorter in ~/.ssh/config: `ControlPath ~/.ssh/%C`',
      );
    const [, session = 'default'] = /^sessiontype (\w+)/m.exec(asked.stdout) ?? [];
    if (session !== 'default')
      return onSsh.wrong(
        `A login to ${name} gets no shell: SessionType is ${session}.`,
        fixFor('SessionType default'),
      );
    const [, command] = /^remotecommand (.*?)\r?$/m.exec(asked.stdout) ?? [];
    const own = command === undefined ? [] : ['-o', 'RemoteCommand=none'];
    const tried = await askProgram('ssh', [...quietly, ...own, ...args, 'true'], loginMs);
    if (tried.status === null)
      return onSsh.wrong(`A login to ${name} takes over ${loginMs / 1_000} s. ${saidBy(tried)}`, fix);
    // Every status but 255 is that of the remote shell.
    if (tried.status !== 255)
      return command === undefined
        ? onSsh.ok(`A login to ${name} works.`)
        : onSsh.warn(
            `A login to ${name} works, and runs '${visibleLine(command)}' only (RemoteCommand): ssh refuses every other command.`,
            fixFor('RemoteCommand none'),
          );
    const identity = await findIdentityFile(host.access.key_fingerprints);
    const isLocked = identity !== undefined && (await hasPassphrase(identity));
    if (isLocked && /Permission denied \(/.test(tried.stderr))
      return onSsh.ok(`A login to ${name} was tried as far as the passphrase of ${identity}.`);
    return onSsh.wrong(`A login to ${name} fails: ${saidBy(tried)}`, fix);
  } catch (error) {
    return onSsh.wrong(sentenceOf(error));
  }
}

function fixFor(setting: string): string {
  return `Put these lines at the beginning of ~/.ssh/config: \`Host andromeda-*\` and \`${setting}\``;
}

function saidBy({ stderr }: { stderr: string }): string {
  return visibleLine(
    stderr
      .trim()
      .split(/[\r\n]+/)
      .slice(-mostLines)
      .join(' '),
  );
}
