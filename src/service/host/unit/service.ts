/** `andromeda service`: the service under systemd, as an account of its own without other rights. */
import { chownSync, existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { commandIo } from '../../../lib/command-io.ts';
import { findHostEntry } from '../../../lib/host-ids.ts';
import { isOneFile, programFile } from '../../../lib/packaging.ts';
import { writeWhole } from '../../../lib/whole-file.ts';
import { type Config, readConfig } from '../../config/index.ts';
import { refusal, runCommand } from '../installation.ts';
import {
  firstConfig,
  gatewayAccount,
  gatewaySocket,
  type InstalledService,
  logsDirectory,
  run,
  stateDirectory,
  systemctl,
  unit,
  unitDirectory,
  unitFiles,
} from './service-unit.ts';
import { installProgram } from './upgrade.ts';

export interface ServiceOptions {
  config: string;
  user: string;
  root: string;
  dryRun: boolean;
  enable: boolean;
}

interface Step {
  description: string;
  run(): void;
}

const usualProgram = '/usr/local/bin/andromeda';
/** Directories that the unit's ProtectHome and PrivateTmp hide. */
const hidden = ['/home', '/root', '/run/user', '/tmp', '/var/tmp'];

export async function printUnit(options: ServiceOptions): Promise<number> {
  return runCommand(() => planned(options).units);
}

/** Makes the accounts, the configuration and the units; existing ones stay. Resolves to the exit status. */
export async function installService(options: ServiceOptions): Promise<number> {
  return runCommand(() => {
    const { steps, units, isFirst } = planned(options);
    if (options.dryRun)
      return `This would\n\n${steps.map(({ description }) => `  - ${description}\n`).join('')}\n${units}`;
    if (process.getuid?.() !== 0)
      throw refusal('This changes the system; run it as root, or with --dry-run to see.');
    for (const { description, run } of steps) {
      run();
      commandIo().stdout.write(`${description}: done\n`);
    }
    return isFirst ? nextSteps(options) : again;
  });
}

function planned(options: ServiceOptions): { units: string; steps: Step[]; isFirst: boolean } {
  const { config, user } = options;
  const root = resolve(options.root);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is these that are looked for
  if (/[\x00-\x1f\x7f]/.test(config)) throw refusal('The path of a configuration has no control characters.');
  if (!/^[a-z_][a-z0-9_-]{0,30}$/.test(user)) throw refusal(`"${user}" is not a name for an account.`);
  const at = (path: string) => join(root, path);
  const installed = root === '/' ? resolve(config) : resolve('/', config);
  const here = realpathSync(programFile);
  const isHidden = hidden.some((directory) => here.startsWith(`${directory}/`));
  const copies = root !== '/' || isHidden;
  if (copies && !isOneFile) {
    throw refusal(
      `${here} is a checkout out of the service's reach. Install the executable of \`npm run build\`.`,
    );
  }
  const program = copies ? usualProgram : here;
  const settings = existsSync(at(installed)) ? readConfig(at(installed)) : undefined;
  const dataDir = settings?.dataDir ?? stateDirectory;
  const files = unitsOf({ program, config: installed, user }, settings);

  const steps: Step[] = [];
  const step = (description: string, run: () => void) => steps.push({ description, run });
  if (copies) step(`copy the program to ${at(program)}`, () => installProgram(here, at(program)));
  steps.push(...accountSteps(user, root));
  if (!existsSync(at(dataDir))) {
    step(`make the data directory ${at(dataDir)}`, () => {
      mkdirSync(at(dataDir), { mode: 0o711 });
      const { uid, gid } = requireAccount(user, root);
      chownSync(at(dataDir), uid, gid);
    });
  }
  if (!existsSync(at(installed))) {
    step(`write a configuration to begin with to ${at(installed)}`, () => {
      write(at(installed), firstConfig, 0o640);
      // The configuration may later name secrets.
      chownSync(at(installed), 0, requireAccount(user, root).gid);
    });
  }
  steps.push(...unitSteps(files, root), ...(isRunning(root) ? systemdSteps(options) : []));
  const units = files.map(([name, text]) => `# ${unitDirectory}/${name}\n${text}`).join('\n');
  return { units, steps, isFirst: settings === undefined };
}

function unitsOf(service: InstalledService, settings: Config | undefined): [name: string, text: string][] {
  const written = [
    settings?.dataDir ?? stateDirectory,
    ...(settings?.audit.file ? [dirname(settings.audit.file)] : []),
  ];
  const kept = settings?.backup?.to;
  const writable = [
    ...written.filter((path) => !isMadeBySystemd(path)),
    // A directory that is not mounted must not keep the service from starting.
    ...(kept === undefined ? [] : [`-${kept}`]),
  ];
  const drainMs = (settings?.gateway.limits.drainMs ?? 0) + (settings?.server.drainMs ?? 0);
  return unitFiles({ ...service, writable, drainMs });
}

function accountSteps(user: string, root: string): Step[] {
  return [user, gatewayAccount]
    .filter((name) => accountOf(name, root) === undefined)
    .map((name) => ({
      description: `make the system account ${name}, which nobody can log in to`,
      run: () => makeAccount(name, root),
    }));
}

function unitSteps(files: [name: string, text: string][], root: string): Step[] {
  return files.map(([name, text]) => {
    const file = join(root, unitDirectory, name);
    return { description: `write ${file}`, run: () => write(file, text, 0o644) };
  });
}

function systemdSteps({ enable }: ServiceOptions): Step[] {
  const read = () => {
    systemctl('daemon-reload');
    // After the socket's unit was gone for a while, systemd has closed it and still takes it for active: then a start does nothing.
    systemctl('restart', gatewaySocket);
  };
  return [
    { description: 'have systemd read them', run: read },
    ...(enable
      ? [{ description: 'start it with the machine', run: () => void systemctl('enable', unit) }]
      : []),
  ];
}

function isMadeBySystemd(path: string): boolean {
  return [stateDirectory, logsDirectory].some((made) => !relative(made, path).startsWith('..'));
}

const again =
  'The configuration that was there stays. `systemctl restart andromeda` takes up the unit; open SSH sessions go on.\n';

function nextSteps({ config, root }: ServiceOptions): string {
  const begin = isRunning(root)
    ? 'systemctl start andromeda'
    : 'systemctl enable --now andromeda    (systemd does not run here: on the machine it is for)';
  return `
Next:

  1. Say in ${config} how people reach it.
  2. Make the first operator:   andromeda admin bootstrap --config ${config} --email YOU@EXAMPLE.ORG
  3. Start it:                  ${begin}
  4. See that it serves:        systemctl status andromeda; journalctl -u andromeda
`;
}

function isRunning(root: string): boolean {
  return root === '/' && existsSync('/run/systemd/system');
}

function accountOf(user: string, root: string): { uid: number; gid: number } | undefined {
  const file = join(root, 'etc/passwd');
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : [];
  const fields =
    // Accounts of this host may come from a directory (LDAP).
    root === '/'
      ? findHostEntry('passwd', user)
      : lines.map((line) => line.split(':')).find(([name]) => name === user);
  return fields && { uid: Number(fields[2]), gid: Number(fields[3]) };
}

function requireAccount(user: string, root: string): { uid: number; gid: number } {
  const account = accountOf(user, root);
  if (account) return account;
  throw refusal(
    `The account ${user} is not in ${join(root, 'etc/passwd')}. Make it there, and run this again.`,
  );
}

function makeAccount(user: string, root: string): void {
  const options = ['--system', '--user-group', '--no-create-home', '--home-dir', stateDirectory];
  const prefix = root === '/' ? [] : ['--prefix', root];
  run('useradd', [...prefix, ...options, '--shell', '/usr/sbin/nologin', '--comment', 'Andromeda', user]);
}

function write(file: string, text: string, mode: number): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeWhole(file, text, mode);
}
