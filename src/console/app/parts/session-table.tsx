/** The table of SSH sessions that have ended. */
import { Link } from '@tanstack/react-router';
import type { components } from '../../../api/generated/business.ts';
import { formatBytes } from '../../../domain/units.ts';
import type { Whose } from '../cluster-names.ts';
import { type Column, Two } from './table.tsx';
import { Age, span } from './time.tsx';

export type PastSession = components['schemas']['PastSession'];

type Names = ReadonlyMap<string, string>;

/** What the filter of the list looks in. */
export function textOfSession(one: PastSession, names: Names): string {
  const { username, cluster_id: id, remote_address, login_node, commands = [], forwards = [] } = one;
  const about = [username, names.get(id) ?? id, remote_address, login_node, one.fingerprint, one.end_reason];
  return [...about, ...commands, ...forwards].join(' ');
}

const person: Column<PastSession> = {
  name: 'Person',
  cell: (one) => (
    <Link to="/past" search={{ person: one.user_id }} title="Only this person">
      {one.username}
    </Link>
  ),
};

export function columnsOf(whose: Whose, names: Names): Column<PastSession>[] {
  return [
    ...(whose === 'all' ? [person] : []),
    {
      name: 'Cluster',
      cell: ({ cluster_id: id, login_node: node }) => <Two first={names.get(id) ?? id} second={node} />,
    },
    {
      name: 'Opened',
      cell: ({ opened_at: from, closed_at: to }) => (
        <Two
          className="when"
          first={moment.format(new Date(from))}
          second={`for ${span(Date.parse(to) - Date.parse(from))}`}
        />
      ),
    },
    {
      name: 'Ended',
      cell: (one) => <Two first={<Age at={one.closed_at} />} second={one.end_reason.replaceAll('_', ' ')} />,
    },
    {
      name: 'From',
      cell: ({ remote_address: address, fingerprint }) => (
        <Two first={address} second={<span title={fingerprint}>{fingerprint.slice(0, 19)}…</span>} />
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

const listed = 3;

function Uses({ of }: { of: PastSession }) {
  if (of.channels === undefined) return <span className="soft">unknown</span>;
  const { commands = [], command_count: commandCount = 0, forwards = [] } = of;
  const { shells = 0, file_transfers: files = 0, forward_count: forwarded = 0 } = of;
  const kinds = [
    shells > 0 && (shells === 1 ? 'a shell' : `${shells} shells`),
    files > 0 && (files === 1 ? 'a file transfer' : `${files} file transfers`),
    commandCount > 0 && (commandCount === 1 ? 'a command' : `${commandCount} commands`),
    forwarded > 0 && `forwards to ${forwards.join(', ')}`,
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
