/** The pages that stand alone, outside of the frame. */
import { Link, useSearch } from '@tanstack/react-router';
import { useEffect } from 'react';
import { goOnWhenSignedIn, signInAt } from '../api.ts';
import { Mark } from '../parts/mark.tsx';

const reasons: Record<string, string> = {
  issuer_away: 'The sign-in service cannot be reached at the moment. Try again in a minute.',
  unavailable: 'The service cannot reach its database at the moment. Try again in a minute.',
  no_account: 'There is no account here for this sign-in. Ask your operator for one.',
  deactivated: 'This account is deactivated. Ask your operator.',
  ended: 'Your session has ended: it was signed out, or not used for an hour.',
  again: 'That sign-in took too long, or was started in another window.',
  refused: 'The sign-in service did not sign you in.',
  busy: 'Too many sign-ins came from your network. Wait a minute, and sign in again.',
  failed: 'The sign-in failed. Try again.',
};

/** The page for a browser that is not signed in. */
export function SignedOutPage() {
  const { why, to = '/' } = useSearch({ from: '/signed-out' });
  // Who signed out on purpose stays here.
  useEffect(() => (why ? goOnWhenSignedIn(to) : undefined), [why, to]);
  return (
    <main className="alone">
      <Mark />
      <h1>{why ? 'You are not signed in' : 'You are signed out'}</h1>
      {why && <p role="alert">{(Object.hasOwn(reasons, why) && reasons[why]) || reasons['failed']}</p>}
      <a className="button" href={signInAt(to)}>
        Sign in
      </a>
    </main>
  );
}

export function NotFoundPage() {
  return (
    <main className="alone">
      <h1>Page not found</h1>
      <Link to="/" className="button">
        Back to the start
      </Link>
    </main>
  );
}
