/** `andromeda admin bootstrap`: makes the first operator of an installation on the host itself, with or without a running server. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DomainError } from '../../domain/error.ts';
import { foldEmail, isEmail } from '../../domain/people/person.ts';
import { requireOwner } from '../../store/data-dir/lock.ts';
import type { Store } from '../../store/engine/index.ts';
import { setPassword } from '../../store/people/identities.ts';
import {
  createPerson,
  findPersonByEmail,
  listStaffKeys,
  updateLifecycle,
  updateStaffKeys,
} from '../../store/people/people.ts';
import { type Config, readConfig } from '../config/index.ts';
import { findConfig, runCommand } from './installation.ts';
import { appendHostEntry, openBeside } from './opened.ts';
import { becomeOwnerOf } from './unit/account.ts';
import { unit, unitDirectory } from './unit/service-unit.ts';

export interface BootstrapOptions {
  config?: string;
  email: string;
  name?: string;
}

/** Makes the person an operator; with the embedded issuer, asks for a password. Resolves to the exit status. */
export async function bootstrap(
  options: BootstrapOptions,
  newPassword: (email: string) => Promise<string>,
): Promise<number> {
  const email = foldEmail(options.email);
  return runCommand(async () => {
    if (!isEmail(email)) {
      throw new DomainError('invalid_request', `"${options.email}" is not an email address.`);
    }
    const file = findConfig(options.config);
    const config = readConfig(file);
    becomeOwnerOf(config.dataDir);
    requireOwner(config.dataDir);
    await using opened = await openBeside(config, false);
    const password =
      config.identity.issuer === undefined
        ? await hashed(await newPassword(email), { email, displayName: options.name })
        : undefined;
    await makeOperator(opened.store, { email, name: options.name, password });
    return nextSteps(email, file, config);
  });
}

async function makeOperator(
  store: Store,
  person: { email: string; name: string | undefined; password: string | undefined },
): Promise<void> {
  const { email, name, password } = person;
  await store.write(async (tx) => {
    const known = await findPersonByEmail(tx.db, email);
    const userId = known?.id ?? (await createPerson(tx, { email, displayName: name ?? email }));
    await updateLifecycle(tx, { userId, state: 'active' });
    await updateStaffKeys(tx, { userId, keys: [...(await listStaffKeys(tx.db, userId)), 'staff.operate'] });
    if (password !== undefined) await setPassword(tx, { userId, hash: password });
    const entry = { operation: 'bootstrap', target: email, details: 'staff.operate' };
    await appendHostEntry(tx, { ...entry, subjectUserId: userId });
  });
}

async function hashed(
  password: string,
  person: { email: string; displayName: string | undefined },
): Promise<string> {
  const { hashNewPassword } = await import('../../api/identity/password.ts');
  return hashNewPassword(password, person);
}

function nextSteps(email: string, file: string, config: Config): string {
  const where =
    config.identity.issuer === undefined ? 'with the password you gave' : `at ${config.identity.issuer}`;
  const isUnit = [unitDirectory, '/usr/lib/systemd/system'].some((path) => existsSync(join(path, unit)));
  const start = isUnit ? 'systemctl start andromeda' : `andromeda serve --config ${file}`;
  return `${email} is an operator of this installation. Next:

  1. Start the service, unless it runs:   ${start}
  2. Sign in as ${email}, ${where}:
                                          andromeda auth login --url ${config.platform.url}
  3. Describe your organizations, people and clusters in a file, see what it would do, and apply it:
                                          andromeda admin plan -f lab.yaml
                                          andromeda admin apply -f lab.yaml
`;
}
