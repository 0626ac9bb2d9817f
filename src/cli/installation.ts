/** Commands for the host itself: a backup, its way back, and the service. What they do is handed in by `main.ts`. */
import { type Command, Option } from 'commander';
import { usage } from './exit.ts';
import { interruptible, startProgress } from './progress.ts';
import type {
  CheckOptions,
  InstallationOptions,
  MigrateOptions,
  RestoreOptions,
  ServerCommands,
  ServiceOptions,
} from './server-commands.ts';
import { example } from './verb.ts';

/** Adds them all. */
export function addInstallation(
  program: Command,
  server: ServerCommands,
  finish: (status: number) => void,
): void {
  program
    .command('check')
    .description('say whether the service could start: settings, files, certificates, ports, database')
    .addOption(configOption())
    .option('--quiet', 'only print what is not well', false)
    .addHelpText('after', example('andromeda check --config andromeda.yaml'))
    .action(async (options: CheckOptions) => finish(await server.check(options)));
  addBackup(program, server, finish);
  addRestore(program, server, finish);
  addMigrate(program, server, finish);

  const service = program
    .command('service')
    .description('run the service under systemd, as an account of its own')
    .addHelpText('after', example('andromeda service install --dry-run'));
  unit(service.command('install').description('make the accounts, a configuration and the units'))
    .option('--dry-run', 'only print what it would do', false)
    .addHelpText('after', example('andromeda service install --dry-run', 'sudo ./andromeda service install'))
    .action(async (options: ServiceOptions) => finish(await server.installService(options)));
  service
    .command('upgrade')
    .description(
      'put this program in the place of the installed one; the old one comes back if it does not serve',
    )
    .addHelpText('after', example('sudo ./andromeda service upgrade'))
    .action(async () => finish(await server.upgradeService()));
  service
    .command('rollback')
    .description('go back to the version before the last upgrade: program, units, and database if it changed')
    .addHelpText('after', example('sudo andromeda service rollback'))
    .action(async () => finish(await server.rollbackService()));
  unit(service.command('print').description('print the units'))
    .addHelpText('after', example('andromeda service print'))
    .action(async (options: Omit<ServiceOptions, 'dryRun'>) =>
      finish(await server.printUnit({ ...options, dryRun: true })),
    );
  service
    .command('reload')
    .description(
      'have the service that runs here take up its settings and certificates; what is wrong changes nothing',
    )
    .addOption(unitConfigOption())
    .addHelpText('after', example('andromeda service reload --config andromeda.yaml'))
    .action(async (options: { config: string }) => finish(await server.reloadService(options)));
  service
    .command('ready')
    .description('ask the service that runs here whether it serves, as containers do again and again')
    .addOption(unitConfigOption())
    .addHelpText('after', example('andromeda service ready --config andromeda.yaml'))
    .action(async (options: { config: string }) => finish(await server.askService(options)));
}

function addBackup(program: Command, server: ServerCommands, finish: (status: number) => void): void {
  which(
    program
      .command('backup')
      .description('write the whole installation to a file while it runs, and check it'),
  )
    .argument('[file]', 'where to; left out: to where the configuration keeps backups')
    .option('--list', 'only print which are kept there')
    .addHelpText(
      'after',
      example('andromeda backup /srv/backup/andromeda.db --config andromeda.yaml', 'andromeda backup --list'),
    )
    .action(async (file: string | undefined, { list, ...options }: InstallationOptions & { list?: true }) => {
      if (list && file !== undefined) throw usage('Give either <file> or --list, not both.');
      if (list) return finish(await server.listBackups(checked(options)));
      const progress = startProgress();
      const onProgress = (part: number) => progress.show(`${Math.floor(part * 100)} %`);
      finish(
        await interruptible('Cancelled; no backup was made.', (signal) =>
          server.backup(file, checked(options), { onProgress, signal }),
        ).finally(() => progress.end()),
      );
    });
}

function addRestore(program: Command, server: ServerCommands, finish: (status: number) => void): void {
  which(program.command('restore').description('put a backup in place of what the data directory holds'))
    .argument('[file]', 'a backup: a file, s3://BUCKET/NAME, or newest')
    .option('--identity <file>', 'the private key that decrypts it: of age, or of SSH')
    .option('--drill', 'change nothing: restore it beside, check it, and remove it again')
    .addHelpText(
      'after',
      example(
        'andromeda restore /srv/backup/andromeda.db --config andromeda.yaml',
        'andromeda restore newest --identity backup-key.txt',
        'andromeda restore --drill --identity backup-key.txt',
      ),
    )
    .action(async (file: string | undefined, options: RestoreOptions) => {
      if (file === undefined && !options.drill)
        throw usage('Say what to restore: a file, s3://BUCKET/NAME, or newest.');
      finish(
        await interruptible('Cancelled; nothing was changed.', (signal) =>
          server.restore(file, checked(options), signal),
        ),
      );
    });
}

function addMigrate(program: Command, server: ServerCommands, finish: (status: number) => void): void {
  const engine = (flag: string, description: string) =>
    new Option(flag, description).choices(['sqlite', 'postgres']).makeOptionMandatory();
  program
    .command('migrate')
    .description("copy a stopped installation from SQLite's file to a PostgreSQL, or back")
    .addOption(engine('--from <engine>', 'where it is'))
    .addOption(engine('--to <engine>', 'where it is to be, empty'))
    .addOption(configOption())
    .addHelpText(
      'after',
      example('andromeda migrate --from sqlite --to postgres --config /etc/andromeda/andromeda.yaml'),
    )
    .action(async ({ from, to, ...options }: MigrateOptions & { from: MigrateOptions['to'] }) => {
      if (from === to) throw usage(`--from and --to are both ${to}; one is sqlite, the other one postgres.`);
      const progress = startProgress();
      finish(
        await interruptible('Cancelled; nothing was copied.', (signal) =>
          server.migrate({ to, ...options }, { onProgress: (text) => progress.show(text), signal }),
        ).finally(() => progress.end()),
      );
    });
}

function which(command: Command): Command {
  return command.addOption(configOption()).option('--data <dir>', 'its data directory, in place of that');
}

function configOption(): Option {
  return new Option(
    '--config <file>',
    'the installation (andromeda.yaml, else /etc/andromeda/andromeda.yaml)',
  );
}

function checked<Options extends InstallationOptions>(options: Options): Options {
  if (options.config !== undefined && options.data !== undefined)
    throw usage('Give either --config or --data, not both.');
  return options;
}

function unit(command: Command): Command {
  return command
    .addOption(unitConfigOption())
    .addOption(new Option('--user <name>', 'the account it runs as').default('andromeda'))
    .addOption(new Option('--root <dir>', 'install into this directory, for an image').default('/'));
}

function unitConfigOption(): Option {
  return new Option('--config <file>', 'the configuration it runs with').default(
    '/etc/andromeda/andromeda.yaml',
  );
}
