/** The frame around every page: menu, organization, person, state of the live stream, and keyboard shortcuts. */
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

/** Reads the person's permissions first, so that no page sends a request that would be refused. */
function Known({ me }: { me: Me }) {
  const { org } = useSearch({ from: '/frame' });
  // Runs here because a person is signed in now.
  useEffect(() => {
    noteSignedIn();
    listen(queryClient);
  }, []);
  const membership = membershipIn(me, org);
  const { org_id: orgID = '', role } = membership ?? {};
  const held = useQuery({ ...readOwnPermissions(orgID, me.user.id), enabled: role === 'member' });
  const { permissions: granted = [] } = held.data ?? {};
  // Without the permission, a grant still lets the person see its cluster.
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
  // The page on the screen: while the next one loads, the address is already ahead.
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
    // The browser sends this event to the other tabs only; theme.ts of this tab needs it as well.
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
  // The live stream reports the end of the session before the answer arrives.
  noteSigningOut();
  // If the session may still be open, the start page shows whether it is.
  const refused = (error: unknown) => ({ url: isSignedOut(error) ? '/signed-out' : '/' });
  const { url } = await own<{ url: string }>('POST', '/sign-out').catch(refused);
  leaveFor(url);
}

const shownMs = 6_000;

/** The element is always present: screen readers announce changes of its text, not an element that appears with it. */
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

/** Streams end now and then and reconnect within this time, which needs no notice. */
const graceMs = 3_000;

/** Says that the page is not current, and how old its data is. CSS dims the page behind it. */
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
