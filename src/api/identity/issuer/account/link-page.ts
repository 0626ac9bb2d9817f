/** Where a person sets a password by a link of an operator (`/link?token=…`), which is good once and for a day. */
import { DomainError } from '../../../../domain/error.ts';
import type { Person } from '../../../../domain/people/person.ts';
import { appendAuditEntry } from '../../../../store/audit/audit.ts';
import { setPassword } from '../../../../store/people/identities.ts';
import { findPerson } from '../../../../store/people/people.ts';
import { findPasswordLink, takePasswordLink } from '../../../../store/people/second-factors.ts';
import { hashNewPassword } from '../../password.ts';
import type { Exchange, PagesContext } from '../exchange.ts';
import { messagePage } from '../pages.ts';
import { redirect, sendPage } from '../respond.ts';
import { linkPage } from './account-pages.ts';
import { ownEntry } from './second-factor.ts';

const ended = messagePage(
  'This link is good no more',
  'It was used, has been replaced, or is older than a day. Ask the people who run this installation for another one.',
);

export function createLinkPage(context: PagesContext) {
  const { browsers } = context;

  function send({ res, browser }: Exchange, token: string, { email }: Person, error?: DomainError): void {
    const page = linkPage({ csrf: browsers.csrf(browser), token, email, message: error?.message });
    const status = error === undefined ? 200 : error.code === 'service_unavailable' ? 503 : 422;
    sendPage(res, status, page, { 'Set-Cookie': browsers.cookie(browser) });
  }

  return {
    /** To look takes nothing: mail scanners follow links. */
    async show(exchange: Exchange): Promise<void> {
      const token = tokenIn(exchange.url.searchParams);
      const person = await personOf(context, token);
      if (person) send(exchange, token, person);
      else sendPage(exchange.res, 410, ended);
    },
    async post(exchange: Exchange, form: URLSearchParams): Promise<void> {
      const token = tokenIn(form);
      const person = await personOf(context, token);
      if (!person) return sendPage(exchange.res, 410, ended);
      const password = form.get('next') ?? '';
      if (password !== form.get('again'))
        return send(
          exchange,
          token,
          person,
          new DomainError('invalid_parameter', 'The two passwords differ.'),
        );
      let hash: string;
      try {
        hash = await hashNewPassword(password, person);
      } catch (error) {
        if (!(error instanceof DomainError)) throw error;
        return send(exchange, token, person, error);
      }
      if (!(await take(context, { token, hash, person, address: exchange.address })))
        return sendPage(exchange.res, 410, ended);
      redirect(exchange.res, '/password/changed');
    },
  };
}

function tokenIn(form: URLSearchParams): string {
  return (form.get('token') ?? '').slice(0, 200);
}

async function personOf({ store, now }: PagesContext, token: string): Promise<Person | undefined> {
  const userId = await findPasswordLink(store.read, token, now());
  const person = userId === undefined ? undefined : await findPerson(store.read, userId);
  return person?.lifecycleState === 'active' ? person : undefined;
}

function take(
  { store, now }: PagesContext,
  { token, hash, person, address }: { token: string; hash: string; person: Person; address: string },
): Promise<boolean> {
  const userId = person.id;
  return store.write(async (tx) => {
    // Deactivated, replaced or used while the password was hashed.
    const isGood =
      (await findPasswordLink(tx.db, token, now())) === userId &&
      (await findPerson(tx.db, userId))?.lifecycleState === 'active';
    if (!isGood || !(await takePasswordLink(tx, token))) return false;
    await setPassword(tx, { userId, hash });
    await appendAuditEntry(tx, { ...ownEntry(userId, address), operation: 'usePasswordLink' });
    return true;
  });
}
