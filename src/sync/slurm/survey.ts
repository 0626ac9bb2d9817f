/**
 * Surveys a cluster: asks each host once what is there, on a deadline of its own, and changes nothing. Needs none of our notes on a
 * host and nothing of a driver, so that any server can do it, also for a cluster whose people are not ours yet.
 */
import { join } from 'node:path';
import type { SlurmSettings } from '../../domain/slurm/settings.ts';
import type { SlurmUser, SurveyedAccount, SurveyedHost } from '../../domain/slurm/survey-report.ts';
import { messageOf } from '../../lib/error-message.ts';
import { createQueue } from '../loop/queue.ts';
import { hostRows, type ScriptScope } from './desired.ts';
import { type Host, hostsOf, nameOf } from './hosts.ts';
import type { SharedKnownHosts } from './known-hosts.ts';
import { type Row, readReport, surveyScriptOf } from './script.ts';
import { createShell, type Shell } from './shell.ts';

export interface SurveyOptions extends Omit<ScriptScope, 'fence'> {
  dataDir: string;
  knownHosts?: SharedKnownHosts | undefined;
  /** Usernames that a directory is asked for, besides those that hosts know. */
  names: readonly string[];
}

const limits = { connectSeconds: 8, ms: 150_000 };
const maxConcurrentHosts = 32;
/** Only the deadline of a host ends its script. */
const noSignal = new AbortController().signal;

export async function surveySlurm(options: SurveyOptions): Promise<SurveyedHost[]> {
  const shell = createShell({
    user: managerOf(options.settings),
    identityFile: options.settings.manage?.identityFile,
    directory: join(options.dataDir, 'slurm'),
    knownHosts: options.knownHosts,
  });
  try {
    return await surveyHosts(options, shell);
  } finally {
    await shell.close();
  }
}

async function surveyHosts(options: SurveyOptions, shell: Shell): Promise<SurveyedHost[]> {
  const { settings } = options;
  const queue = createQueue(maxConcurrentHosts);
  const names = new Set(options.names);
  const ask = async (host: Host) => {
    const asked = { ...options, names: [...names] };
    const answer = await queue(() => surveyHost(host, asked, shell));
    return { host, answer, names: new Set([...asked.names, ...namesIn(answer)]) };
  };
  const askAll = async (hosts: readonly Host[]) => {
    const found = await Promise.all(hosts.map(ask));
    for (const name of found.flatMap((one) => [...one.names])) names.add(name);
    return found;
  };
  // The controller knows the nodes, and names that a directory can be asked for.
  const first = await askAll(hostsOf(settings, { nodes: [], usernames: [] }).slice(0, 1));
  const nodes = first.flatMap(({ answer }) => answer.nodes);
  const rest = await askAll(hostsOf(settings, { nodes, usernames: [] }).slice(1));
  return Promise.all(
    [...first, ...rest].map(async ({ host, answer, names: own }) => {
      if (answer.directories.length === 0 || own.size === names.size) return answer;
      // Another host knew names that this one's directory was not asked for.
      const again = await ask(host);
      return again.answer.fault === null ? again.answer : answer;
    }),
  );
}

export function managerOf({ manage }: SlurmSettings): string {
  return manage?.user ?? 'root';
}

/** Never throws for a host's fault: that is a line of the answer. */
async function surveyHost(host: Host, options: SurveyOptions, shell: Shell): Promise<SurveyedHost> {
  const rows = options.names.filter((name) => !/[\t\n\r\0]/.test(name)).map((name): Row => ['name', name]);
  const script = surveyScriptOf([...hostRows(options, host, 'survey'), ...rows]);
  try {
    return surveyedHost(host, await shell.run(host, script, noSignal, limits), null);
  } catch (error) {
    return surveyedHost(host, 'end', messageOf(error));
  }
}

/** Names that may be people's, also those that no account was found for. */
function namesIn({ candidates, slurm, groups, homeNames }: SurveyedHost): string[] {
  return [...candidates, ...slurm.keys(), ...groups.flatMap(({ members }) => members), ...homeNames];
}

function surveyedHost(host: Host, text: string, fault: string | null): SurveyedHost {
  const report = readReport(text);
  const rows = (kind: string) => report.get(kind) ?? [];
  const firsts = (kind: string) => rows(kind).map(([one = '']) => one);
  const name = nameOf(host);
  const refused = new Set(
    rows('check').flatMap(([who = '', said = '']) => (said === '' || said === 'Success' ? [] : [who])),
  );
  return {
    host: name,
    roles: [...host.roles],
    fault,
    accounts: new Map(rows('account').map((row) => [row[1] ?? '', accountOf(row, refused)])),
    candidates: firsts('candidate'),
    groups: rows('group').map(([group = '', gid, members]) => ({
      name: group,
      gid: Number(gid),
      members: listOf(members),
    })),
    homes: new Map(
      rows('home').map(([owner, mode = '', home = '']) => [home, { owner: Number(owner), mode }]),
    ),
    linked: firsts('linked'),
    homeNames: firsts('home-name'),
    closed: firsts('closed'),
    keys: rows('key').map(([who = '', file = '', line = '']) => ({ name: who, file, line })),
    read: firsts('read'),
    logins: rows('login').map(([who = '', from = '', fingerprint = '', times, last = '']) => ({
      ...{ host: name, name: who, from, fingerprint, last },
      times: Number(times),
    })),
    sudoers: firsts('sudoer'),
    services: firsts('service'),
    passwdSum: firsts('sum')[0],
    directories: firsts('directory'),
    notices: rows('notice').map(([kind, what = '']) => ({
      kind: kind as 'first' | 'writer' | 'other',
      text: what,
    })),
    nodes: firsts('node'),
    slurm: new Map(rows('slurm').map(([who = '', ...row]) => [who, slurmUserOf(row)])),
  };
}

function accountOf(row: readonly string[], refused: ReadonlySet<string>): SurveyedAccount {
  const [source = '', name = '', uid, gid, gecos = '', home = '', shell = '', password, expired] = row;
  return {
    ...{ source, name, gecos, home, shell },
    uid: Number(uid),
    gid: Number(gid),
    password: password as SurveyedAccount['password'],
    expired: expired === '1' || refused.has(name),
  };
}

function slurmUserOf(row: readonly string[]): SlurmUser {
  const [accounts, usual = '', level = '', own, ...numbers] = row;
  const [cpu = 0, gpu = 0, running = 0, pending = 0] = numbers.map(Number);
  const lists = { accounts: [...new Set(listOf(accounts))], coordinates: listOf(own) };
  return { ...lists, default: usual, level, cpu, gpu, running, pending };
}

function listOf(text = ''): string[] {
  return text.split(',').filter(Boolean);
}
