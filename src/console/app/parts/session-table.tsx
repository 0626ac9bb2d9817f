/** The table of SSH sessions that are over. */
import { Link } from '@tanstack/react-router';
import { formatBytes } from '../../../domain/units.ts';
import type { PastSession, Whose } from '../sessions.ts';
import { type Column, Table } from './table.tsx';
import { Age, span } from './time.tsx';

/** What the filter of the page looks in. */
export function textOfSession(one: PastSession, clusterName: (one: PastSession) => string): string {
  const { username, remote_address, login_node, fingerprint, end_reason, commands = [], forwards = [] } = one;
  return [
    ...[username, clusterName(one), remote_address, login_node, fingerprint, end_reason],
    ...commands,
    ...forwards,
  ].join(' ');
}

export function PastTable({
  sessions,
  whose,
  clusterName,
  filter,
  onFilter,
}: {
  sessions: readonly PastSession[];
  whose: Whose;
  clusterName: (one: PastSession) => string;
  filter: string;
  onFilter: (text: string) => void;
}) {
  return (
    <Table
      name="sessions"
      rows={sessions}
      id={(one) => String(one.seq)}
      text={(one) => textOfSession(one, clusterName)}
      filter={filter}
      onFilter={onFilter}
      columns={[...(whose === 'all' ? [person] : []), ...columnsOf(clusterName)]}
    />
  );
}

const person: Column<PastSession> = {
  name: 'Person',
  cell: (one) => (
    <Link to="/past" search={{ person: one.user_id }} title="Only this person">
      {one.username}
    </Link>
  ),
};

function columnsOf(clusterName: (one: PastSession) => string): Column<PastSession>[] {
  return [
    {
      name: 'Cluster',
      cell: (one) => (
        <div className="two">
          {clusterName(one)}
          <span>{one.login_node}</span>
        </div>
      ),
    },
    {
      name: 'Opened',
      cell: (one) => (
        <div className="two when">
          {moment.format(new Date(one.opened_at))}
          <span>for {span(Date.parse(one.closed_at) - Date.parse(one.opened_at))}</span>
        </div>
      ),
    },
    {
      name: 'Ended',
      cell: (one) => (
        <div className="two">
          <Age at={one.closed_at} />
          <span>{describeEnd(one.end_reason)}</span>
        </div>
      ),
    },
    {
      name: 'From',
      cell: (one) => (
        <div className="two">
          {one.remote_address}
          <span title={one.fingerprint}>{one.fingerprint.slice(0, 19)}…</span>
        </div>
      ),
    },
    { name: 'Sent', isNumber: true, cell: (one) => amount(one.bytes_up) },
    { name: 'Received', isNumber: true, cell: (one) => amount(one.bytes_down) },
    { name: 'Activity', cell: (one) => <Uses of={one} /> },
  ];
}

const moment = new Intl.DateTimeFormat(undefined, { dateStyle: 'short', timeStyle: 'short' });

function amount(bytes: number | undefined): string {
  return bytes === undefined ? '–' : formatBytes(bytes);
}

function describeEnd(reason: string): string {
  return reason.replaceAll('_', ' ');
}

const listed = 3;

function Uses({ of }: { of: PastSession }) {
  if (of.channels === undefined) return <span className="soft">unknown</span>;
  const {
    commands = [],
    command_count: commandCount = 0,
    forwards = [],
    shells = 0,
    file_transfers: files = 0,
  } = of;
  const kinds = [
    shells > 0 && (shells === 1 ? 'a shell' : `${shells} shells`),
    files > 0 && (files === 1 ? 'a file transfer' : `${files} file transfers`),
    commandCount > 0 && (commandCount === 1 ? 'a command' : `${commandCount} commands`),
    (of.forward_count ?? 0) > 0 && `forwards to ${forwards.join(', ')}`,
  ].filter(Boolean);
  const rest = commandCount - Math.min(listed, commands.length);
  return (
    <div className="two roomy">
      {kinds.length === 0 ? 'nothing' : kinds.join(', ')}
      {commands.slice(0, listed).map((command, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes, and has repetitions
        <code key={index}>{command}</code>
      ))}
      {commands.length > 0 && rest > 0 && <span>and {rest} more</span>}
    </div>
  );
}
