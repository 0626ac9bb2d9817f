/** Commands for the host itself: a backup, its way back, and the service. What they do is handed in by `main.ts`. */
import { Argument } from 'commander';
import { usage } from './exit.ts';
import { interruptible, withProgress } from './progress.ts';
import type {
  CheckOptions,
  InstallationOptions,
  MigrateOptions,
  RestoreOptions,
  ServerCommands,
  ServiceOptions,
} from './server-commands.ts';
import { jsonFlag, type Noun, optional, own, required, type Verb } from './verb.ts';

const configFlag = optional(
  '--config <file>',
  'the installation (andromeda.yaml, else /etc/andromeda/andromeda.yaml)',
);
const dataFlag = optional('--data <dir>', 'its data directory, in place of that');
const unitConfigFlag = optional('--config <file>', 'the configuration it runs with').default(
  '/etc/andromeda/andromeda.yaml',
);
const unitFlags = [
  unitConfigFlag,
  optional('--user <name>', 'the account it runs as').default('andromeda'),
  optional('--root <dir>', 'install into this directory, for an image').default('/'),
];

export const onHost = (server: ServerCommands): (Noun | Verb)[] => [
  own<CheckOptions>({
    usage: 'check',
    summary: 'say whether the service could start: settings, files, certificates, ports, database',
    example: 'andromeda check --config andromeda.yaml',
    flags: [configFlag, optional('--quiet', 'only print what is not well').default(false), jsonFlag],
    run: (options) => server.check(options),
  }),
  backup(server),
  restore(server),
  migrate(server),
  {
    name: 'service',
    summary: 'run the service under systemd, as an account of its own',
    verbs: serviceVerbs(server),
  },
];

const serviceVerbs = (server: ServerCommands): Verb[] => [
  own<ServiceOptions>({
    usage: 'install',
    summary: 'make the accounts, a configuration and the units',
    example: ['andromeda service install --dry-run', 'sudo ./andromeda service install'],
    flags: [
      ...unitFlags,
      optional('--dry-run', 'only print what it would do').default(false),
      optional('--no-enable', 'leave it as it is whether the service starts with the machine'),
    ],
    run: (options) => server.installService(options),
  }),
  own({
    usage: 'upgrade',
    summary:
      'put this program in the place of the installed one; the old one comes back if it does not serve',
    example: 'sudo ./andromeda service upgrade',
    run: () => server.upgradeService(),
  }),
  own({
    usage: 'rollback',
    summary: 'go back to the version before the last upgrade: program, units, and database if it changed',
    example: 'sudo andromeda service rollback',
    run: () => server.rollbackService(),
  }),
  own<Omit<ServiceOptions, 'dryRun' | 'enable'>>({
    usage: 'print',
    summary: 'print the units',
    example: 'andromeda service print',
    flags: unitFlags,
    run: (options) => server.printUnit({ ...options, dryRun: true, enable: false }),
  }),
  own<{ config: string }>({
    usage: 'reload',
    summary:
      'have the service that runs here take up its settings and certificates; what is wrong changes nothing',
    example: 'andromeda service reload --config andromeda.yaml',
    flags: [unitConfigFlag],
    run: (options) => server.reloadService(options),
  }),
  own<{ config: string }>({
    usage: 'ready',
    summary: 'ask the service that runs here whether it serves, as containers do again and again',
    example: 'andromeda service ready --config andromeda.yaml',
    flags: [unitConfigFlag],
    run: (options) => server.askService(options),
  }),
];

const backup = (server: ServerCommands): Verb =>
  own<InstallationOptions & { list?: true; json: boolean }, [string?]>({
    usage: 'backup',
    summary: 'write the whole installation to a file while it runs, and check it',
    args: [new Argument('[file]', 'where to; left out: to where the configuration keeps backups')],
    example: ['andromeda backup /srv/backup/andromeda.db --config andromeda.yaml', 'andromeda backup --list'],
    flags: [configFlag, dataFlag, optional('--list', 'only print which are kept there'), jsonFlag],
    async run({ list, json, ...options }, file) {
      if (list && file !== undefined) throw usage('Give either <file> or --list, not both.');
      if (list) return server.listBackups({ ...checked(options), json });
      const whole = checked(options);
      return interruptible('Cancelled; no backup was made.', (signal) =>
        withProgress((show) => {
          const onProgress = (part: number) => show(`${Math.floor(part * 100)} %`);
          return server.backup(file, whole, { onProgress, signal });
        }),
      );
    },
  });

const restore = (server: ServerCommands): Verb =>
  own<RestoreOptions, [string?]>({
    usage: 'restore',
    summary: 'put a backup in place of what the data directory holds',
    args: [new Argument('[file]', 'a backup: a file, or newest')],
    example: [
      'andromeda restore /srv/backup/andromeda.db --config andromeda.yaml',
      'andromeda restore newest',
      'andromeda restore --drill',
    ],
    flags: [
      configFlag,
      dataFlag,
      optional('--drill', 'change nothing: restore it to a temporary place, check it, and remove it again'),
    ],
    async run(options, file) {
      if (file === undefined && !options.drill) throw usage('Say what to restore: a file, or newest.');
      return interruptible('Cancelled; nothing was changed.', (signal) =>
        server.restore(file, checked(options), signal),
      );
    },
  });

const engine = (flag: string, description: string) =>
  required(flag, description).choices(['sqlite', 'postgres']);

const migrate = (server: ServerCommands): Verb =>
  own<MigrateOptions & { from: string }>({
    usage: 'migrate',
    summary: "copy a stopped installation from SQLite's file to a PostgreSQL, or back",
    example: 'andromeda migrate --from sqlite --to postgres --config /etc/andromeda/andromeda.yaml',
    flags: [
      engine('--from <engine>', 'where it is'),
      engine('--to <engine>', 'where it is to be, empty'),
      configFlag,
    ],
    async run({ from, to, ...options }) {
      if (from === to) throw usage(`--from and --to are both ${to}; one is sqlite, the other one postgres.`);
      return interruptible('Cancelled; nothing was copied.', (signal) =>
        withProgress((onProgress) => server.migrate({ to, ...options }, { onProgress, signal })),
      );
    },
  });

function checked<Options extends InstallationOptions>(options: Options): Options {
  if (options.config !== undefined && options.data !== undefined)
    throw usage('Give either --config or --data, not both.');
  return options;
}
