/** What needs an operator's attention: each failure in words, newest first, with the one thing to do. */

import { useQuery } from '@tanstack/react-query';
import { type Problem, readProblems } from '../reads.ts';
import { Loaded, Panel } from './page.tsx';
import { State } from './state.tsx';
import { Text } from './text.tsx';
import { Age, span, useNow } from './time.tsx';

const areas: Record<Problem['area'], string> = {
  cluster: 'Cluster',
  gateway: 'Gateway',
  backup: 'Service',
  certificate: 'Certificate',
  disk: 'Disk',
  audit: 'Audit trail,',
  server: 'Server',
  identity: 'Sign-in:',
};

export function Problems() {
  const problems = useQuery(readProblems());
  return (
    <Panel title="Needs attention" cli="andromeda admin problems" operation="GET /operator/problems">
      <Loaded of={problems}>
        {({ problems: list }) =>
          list.length === 0 ? (
            <p>
              <State kind="good">Nothing</State>{' '}
              <span className="soft">
                as of <Age at={new Date(problems.dataUpdatedAt).toISOString()} />
              </span>
            </p>
          ) : (
            <ul className="problems">
              {list.map((one) => (
                <Item key={`${one.area} ${one.about} ${one.side} ${one.message}`} problem={one} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  );
}

function Item({ problem }: { problem: Problem }) {
  const { area, about, side, urgency, since, message, action, next_try_at: next } = problem;
  return (
    <li>
      <p>
        <State kind={urgency === 'now' ? 'bad' : 'warn'}>{urgency === 'now' ? 'Urgent' : 'Soon'}</State>{' '}
        <b>
          {areas[area]} {about}
          {side && `, ${side === 'slurm' ? 'Slurm' : 'Kubernetes'}`}
        </b>{' '}
        <span className="soft">
          {since === undefined ? (
            'began at an unknown time'
          ) : (
            <>
              began <Age at={since} />
            </>
          )}
          {next !== undefined && (
            <>
              , next try <NextTry at={next} />
            </>
          )}
        </span>
      </p>
      <p>
        <Text of={message} />
      </p>
      <p>
        <b>Do:</b> <Commands text={action} />
      </p>
    </li>
  );
}

/** A sentence, in which commands stand between backticks. */
function Commands({ text }: { text: string }) {
  return text.split('`').map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text stay where they are
    index % 2 === 1 ? <code key={index}>{part}</code> : <span key={index}>{part}</span>,
  );
}

/** When something is tried again; one that is due is under way. */
export function NextTry({ at }: { at: string }) {
  const left = Date.parse(at) - useNow();
  return <>{left <= 0 ? 'now' : `in ${span(left)}`}</>;
}
