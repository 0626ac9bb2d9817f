/** What stands around every page: the menu, the organization, the person, whether the page is live, and the keys. */
import { useQuery } from '@tanstack/react-query';
import { Link, Outlet, useMatches, useNavigate, useSearch } from '@tanstack/react-router';
import { type LucideIcon, Monitor, Moon, Sun } from 'lucide-react';
import { useEffect, useState, useSyncExternalStore } from 'react';
import { isSignedOut, leaveFor, noteSignedIn, noteSigningOut, own, queryClient } from './api.ts';
import { announcement, listen, live, notice } from './live.ts';
import { beyondMenu, type MenuGroup, menuOf, refusalOf } from './menu.ts';
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
  const { people = '' } = (shown?.search ?? {}) as { people?: string };
  const refusal = refusalOf(shown?.pathname ?? '/', people, who);
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
          <Notice />
          <Announcements />
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
    ...beyondMenu(who),
    ...clusters.map(({ id, spec }) => ({ name: spec.name, to: `/clusters/${id}`, hint: 'Cluster' })),
    ...clusters.map(({ id, spec }) => ({
      name: `Slurm configuration of ${spec.name}`,
      to: `/clusters/${id}/slurm`,
      hint: 'Partitions, prolog, history',
    })),
    { name: 'Download', to: '/download', hint: 'The andromeda command for your machine', isOutside: true },
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

/** Announced to screen readers when it appears: the element itself is always there. */
function Notice() {
  const text = notice.use((one) => one);
  return (
    <div role="status" className={text === undefined ? undefined : 'notice'}>
      {text !== undefined && (
        <>
          <p>{text}</p>
          <Button className="second small" onClick={() => notice.set(undefined)}>
            Close
          </Button>
        </>
      )}
    </div>
  );
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

function Announcements() {
  return (
    <>
      <Done />
      <Offline />
    </>
  );
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
  const isOnline = useSyncExternalStore(watchNetwork, () => navigator.onLine);
  const lost = live.use((one) => one.lost);
  const now = useNow();
  const isShown = lost !== undefined && (!isOnline || now - lost.at > graceMs);
  return (
    <div className={isShown ? 'offline' : undefined}>
      <p role="status">
        {isShown && `${isOnline ? 'The console does not answer.' : 'You are offline.'} It updates by itself.`}
      </p>
      {isShown && (
        <p className="small">
          This page shows what was known <Age at={new Date(lost.heardAt).toISOString()} />.
        </p>
      )}
    </div>
  );
}

function watchNetwork(watcher: () => void): () => void {
  const events = ['online', 'offline'];
  for (const event of events) window.addEventListener(event, watcher);
  return () => {
    for (const event of events) window.removeEventListener(event, watcher);
  };
}

type Theme = 'system' | 'light' | 'dark';

const themes: readonly [Theme, name: string, LucideIcon][] = [
  ['system', 'System', Monitor],
  ['light', 'Light', Sun],
  ['dark', 'Dark', Moon],
];

/** As theme.ts reads it when the page is loaded. */
const stored = 'andromeda-theme';
const root = document.documentElement;

function shownTheme(): Theme {
  const { theme } = root.dataset as { theme?: Theme };
  return theme === 'light' || theme === 'dark' ? theme : 'system';
}

function show(theme: string | null): void {
  if (theme === 'light' || theme === 'dark') root.dataset['theme'] = theme;
  else delete root.dataset['theme'];
}

/** The scheme of this browser, in every tab of it. */
function ThemeSwitch() {
  const [theme, setTheme] = useState(shownTheme);
  useEffect(() => {
    const follow = ({ key, newValue }: StorageEvent) => {
      if (key !== stored) return;
      show(newValue);
      setTheme(shownTheme());
    };
    window.addEventListener('storage', follow);
    return () => window.removeEventListener('storage', follow);
  }, []);
  const choose = (chosen: Theme) => {
    show(chosen);
    setTheme(chosen);
    if (chosen === 'system') localStorage.removeItem(stored);
    else localStorage.setItem(stored, chosen);
  };
  return (
    <fieldset className="theme">
      <legend className="hidden">Theme</legend>
      {themes.map(([one, name, Icon]) => (
        <Button
          key={one}
          className="second small"
          aria-label={name}
          title={name}
          aria-pressed={one === theme}
          onClick={() => choose(one)}
        >
          <Icon aria-hidden="true" />
        </Button>
      ))}
    </fieldset>
  );
}
