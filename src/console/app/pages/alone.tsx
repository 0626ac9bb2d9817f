/** The pages outside of the frame, and the page for an unknown address. */
import { useQuery } from '@tanstack/react-query';
import { Link, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import type { SignInReason } from '../../../domain/error.ts';
import { goOnWhenSignedIn, signInAt } from '../api.ts';
import { Empty, Loading, Mark, Page } from '../parts/page.tsx';
import { readMe } from '../reads.ts';

const refusals = {
  no_account: 'There is no account here for this sign-in. Ask your operator for one.',
  deactivated: 'This account is deactivated. Ask your operator.',
  again: 'That sign-in took too long, or was started in another window.',
  no_address: 'The sign-in service does not say that your email address is verified. Ask your operator.',
  scope: 'The sign-in service does not let this service read your email address. Tell your operator.',
  bound: 'Your address belongs to an account with another sign-in. Ask your operator to rebind it.',
  audience: 'The sign-in service issues tokens that are not meant for this service. Tell your operator.',
  issuer: 'The sign-in service calls itself otherwise than it is known here. Tell your operator.',
  clock: 'The clock of this service or of the sign-in service is wrong. Tell your operator.',
  too_old:
    'The sign-in service did not ask you to prove again who you are. Sign out there, and sign in again.',
} satisfies Record<SignInReason, string>;

const reasons: Record<string, string> = {
  ...refusals,
  issuer_away: 'The sign-in service cannot be reached at the moment. Try again in a minute.',
  unavailable: 'The service cannot reach its database at the moment. Try again in a minute.',
  ended: 'Your session has ended: it was signed out, or not used for an hour.',
  refused: 'The sign-in service did not sign you in.',
  busy: 'Too many sign-ins came from your network. Wait a minute, and sign in again.',
  failed: 'The sign-in failed. Try again.',
};

export function SignedOutPage() {
  const { why, to = '/' } = useSearch({ strict: false });
  // A person who signed out on purpose stays here.
  useEffect(() => (why ? goOnWhenSignedIn(to) : undefined), [why, to]);
  return <Alone why={why} to={to} label="Continue" />;
}

/** The page after a sign-in that an SSH login required. */
export function SignedInPage() {
  return (
    <Alone to="/" label="Open the console">
      <p>Go back to your terminal or editor: a login that waits there goes on by itself.</p>
    </Alone>
  );
}

interface AloneOptions {
  why?: string | undefined;
  to: string;
  /** For a signed-in person: the label of the link to `to`, below the text in `children`. */
  label: string;
  children?: ReactNode;
}

function Alone({ why, to, label, children }: AloneOptions) {
  const me = useQuery({ ...readMe(), retry: false });
  if (me.isPending) return <Loading />;
  return (
    <main className="alone">
      <Mark />
      {me.data ? (
        <>
          <h1>You are signed in as {me.data.user.display_name}</h1>
          {children}
        </>
      ) : (
        <>
          <h1>{why ? 'You are not signed in' : 'You are signed out'}</h1>
          {why && <p role="alert">{(Object.hasOwn(reasons, why) && reasons[why]) || reasons['failed']}</p>}
        </>
      )}
      <a className="button" href={signInAt(to)}>
        {me.data ? label : 'Sign in'}
      </a>
    </main>
  );
}

export function NotFoundPage() {
  return (
    <Page title="Page not found">
      <Empty action={<Link to="/">Start</Link>}>There is no page at this address.</Empty>
    </Page>
  );
}
