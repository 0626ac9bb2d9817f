/** What stands around every page: the menu, the organization, the person, whether the page is live, and the keys. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useMatches, useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { isSignedOut, leaveFor, noteSignedIn, noteSigningOut, own, queryClient } from './api.ts';
import { announcement, listen, live } from './live.ts';
import { type MenuGroup, menuOf, refusalOf } from './menu.ts';
import { BottomBar, Keys, Menu, sheetId } from './parts/menu.tsx';
import { Button, Empty, Loaded, Mark, Page } from './parts/page.tsx';
import { Age, State, useNow } from './parts/values.tsx';
import { readAccessOf } from './people.ts';
import {
  holdsStaff,
  type Me,
  membershipIn,
  readClusters,
  readMe,
  readOrganization,
  readOwnPermissions,
  type Who,
  WhoContext,
  whoIs,
} from './reads.ts';

export function Frame() {
  const me = useQuery(readMe());
  return <Loaded of={me}>{(known) => <Known me={known} />}</Loaded>;
}

/** Reads what the person may do before any page asks for something that may be refused. */
function Known({ me }: { me: Me }) {
  const { org } = useSearch({ from: '/frame' });
  // Only once a person is known to be signed in.
  useEffect(() => {
    noteSignedIn();
    listen(queryClient);
  }, []);
  const membership = membershipIn(me, org);
  const { org_id: orgID = '', role } = membership ?? {};
  const held = useQuery({ ...readOwnPermissions(orgID, me.user.id), enabled: role === 'member' });
  const { permissions: granted = [] } = held.data ?? {};
  // Without a permission, a grant shows a cluster all the same.
  const needsGrants =
    held.data !== undefined && !granted.includes('clusters.read') && !holdsStaff({ me }, 'staff.read');
  const reach = useQuery({ ...readAccessOf(orgID, [me.user.id]), enabled: needsGrants });
  const ways = reach.data?.people.flatMap(({ clusters }) => clusters.flatMap((one) => one.ways)) ?? [];
  const who = whoIs(
    me,
    membership,
    granted,
    ways.some(({ by }) => by === 'grant'),
  );
  if (role === 'member' && held.data === undefined) return <Loaded of={held}>{() => null}</Loaded>;
  if (needsGrants && reach.data === undefined) return <Loaded of={reach}>{() => null}</Loaded>;
  return <Framed who={who} />;
}

function Framed({ who }: { who: Who }) {
  // Of the page that is shown: the address is ahead of it while that is loaded.
  const shown = useMatches().at(-1);
  const { userId, people = '' } = { ...shown?.search, ...shown?.params } as {
    userId?: string;
    people?: string;
  };
  const refusal = refusalOf(shown?.fullPath ?? '/', userId ?? people, who);
  const [open, setOpen] = useState<'palette' | 'help'>();
  const groups = menuOf(who);
  return (
    <WhoContext value={who}>
      <a className="skip" href="#page">
        Skip to content
      </a>
      <div className="frame">
        <header className="bar">
          <Link to="/" className="brand" aria-label="Andromeda, start">
            <Mark />
            <span>Andromeda</span>
          </Link>
          <Live />
          <div id={sheetId} className="sheet" popover="auto">
            <Organization who={who} />
            <Menu groups={groups} />
            <div className="foot">
              <Button className="link small" onClick={() => setOpen('palette')}>
                Go to <kbd>Ctrl K</kbd>
              </Button>
              <Button className="link small" onClick={() => setOpen('help')}>
                Shortcuts <kbd>?</kbd>
              </Button>
              <ThemeSwitch />
              <Person me={who.me} />
            </div>
          </div>
        </header>
        <main id="page" tabIndex={-1}>
          <Done />
          <Offline />
          {refusal ? <Refused {...refusal} /> : <Outlet />}
        </main>
        <BottomBar groups={groups} />
      </div>
      <Keys pages={usePages(who, groups)} open={open} setOpen={setOpen} />
    </WhoContext>
  );
}

function Refused({ title, why }: { title: string; why: string }) {
  return (
    <Page title={title} sentence="You do not have access to this page.">
      <Empty>{why}</Empty>
    </Page>
  );
}

function usePages(who: Who, groups: readonly MenuGroup[]) {
  const { data: clusters = [] } = useQuery(readClusters(who));
  return [
    ...groups.flatMap(({ items }) => items),
    ...clusters.map(({ id, spec }) => ({ name: `Cluster ${spec.name}`, to: `/clusters/${id}` })),
    ...clusters.map(({ id, spec }) => ({
      name: `Slurm configuration of ${spec.name}`,
      to: `/clusters/${id}/slurm`,
    })),
  ];
}

function Organization({ who }: { who: Who }) {
  const navigate = useNavigate();
  const { memberships } = who.me;
  const known = useQuery({ ...readOrganization(who.orgID), enabled: who.orgID !== '' });
  if (memberships.length === 0) return <p className="soft small">You are not in an organization.</p>;
  const { display_name: name } = known.data ?? {};
  if (memberships.length === 1)
    return (
      <p className="organization" title={name}>
        {name ?? '…'}
      </p>
    );
  return (
    <select
      aria-label="Organization"
      value={who.orgID}
      onChange={(event) => void navigate({ to: '/', search: { org: event.target.value } })}
    >
      {memberships.map(({ org_id: id }) => (
        <OrganizationOption key={id} id={id} />
      ))}
    </select>
  );
}

function OrganizationOption({ id }: { id: string }) {
  const { data } = useQuery(readOrganization(id));
  return <option value={id}>{data?.display_name ?? id}</option>;
}

function Live() {
  const state = live.use((one) => one.state);
  return (
    <p className="small" role="status">
      {state === 'live' ? <State kind="good">Live</State> : <State kind="busy">Connecting…</State>}
    </p>
  );
}

function ThemeSwitch() {
  const theme = useSyncExternalStore(watchStorage, () => document.documentElement.dataset['theme']);
  const choose = (chosen: string) => {
    localStorage.setItem('andromeda-theme', chosen);
    // The browser tells the other tabs; theme.ts of this one listens as well.
    window.dispatchEvent(new StorageEvent('storage'));
  };
  return (
    <select aria-label="Theme" value={theme} onChange={({ target }) => choose(target.value)}>
      <option value="system">System theme</option>
      <option value="light">Light theme</option>
      <option value="dark">Dark theme</option>
    </select>
  );
}

function watchStorage(watcher: () => void): () => void {
  window.addEventListener('storage', watcher);
  return () => window.removeEventListener('storage', watcher);
}

function Person({ me }: { me: Me }) {
  const { display_name: name, primary_email: email } = me.user;
  return (
    <div className="person">
      <span>
        <b title={name}>{name}</b>
        {name !== email && <span className="soft">{email}</span>}
      </span>
      <Button className="second small" onClick={() => void signOut()}>
        Sign out
      </Button>
    </div>
  );
}

async function signOut(): Promise<void> {
  // The stream says that the session is over before the answer is here.
  noteSigningOut();
  // Where it is not certain that the session is over, the page says what is.
  const refused = (error: unknown) => ({ url: isSignedOut(error) ? '/signed-out' : '/' });
  const { url } = await own<{ url: string }>('POST', '/sign-out').catch(refused);
  leaveFor(url);
}

const shownMs = 6_000;

/** The element is always there: a screen reader announces what changes in it, not what appears with it. */
function Done() {
  const done = announcement.use((one) => one);
  useEffect(() => {
    if (!done) return undefined;
    const timer = setTimeout(() => announcement.set(undefined), shownMs);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <div role="status" className={done ? 'toast' : 'hidden'}>
      {done && <p key={done.count}>{done.text}</p>}
    </div>
  );
}

/** A stream ends now and then, and is back within this. */
const graceMs = 3_000;

/** That the page is not current, and how old what it shows is. The page behind it is dimmed by its style. */
function Offline() {
  const lost = live.use((one) => one.lost);
  const isShown = useNow() - (lost?.at ?? Infinity) > graceMs;
  return (
    <div className={isShown ? 'offline' : undefined}>
      <p role="status">
        {isShown &&
          `${navigator.onLine ? 'The console does not answer.' : 'You are offline.'} It updates by itself.`}
      </p>
      {isShown && lost && (
        <p className="small">
          This page shows what was known <Age at={new Date(lost.heardAt).toISOString()} />.
        </p>
      )}
    </div>
  );
}
