/** For operators: the service's own keys and how each is replaced, and its backups. */
import { useQuery } from '@tanstack/react-query';
import { formatBytes } from '../../../domain/units.ts';
import { CopyLine, Facts, Loaded, Page, Panel, said } from '../parts/page.tsx';
import { Age, Moment, State } from '../parts/values.tsx';
import { type Installation, readInstallation } from '../reads.ts';

type ServiceKeys = Installation['keys'][number];
type ServiceKey = ServiceKeys['current'];
type Backup = Installation['backup'];

const command = { cli: 'andromeda admin installation', operation: 'GET /operator/installation' };

export default function OperatorServicePage() {
  const installation = useQuery(readInstallation());
  return (
    <Page title="Keys and backups" sentence={said(installation, (known) => <Sentence of={known} />)}>
      <Loaded of={installation}>
        {({ keys, backup }) => (
          <>
            <Panel title="Backups" {...command}>
              <BackupFacts backup={backup} />
            </Panel>
            {keys.map((one) => (
              <Panel key={one.kind} title={titles[one.kind]} {...command}>
                <KeyFacts keys={one} />
              </Panel>
            ))}
          </>
        )}
      </Loaded>
    </Page>
  );
}

const titles: Record<ServiceKeys['kind'], string> = {
  host: 'Gateway host key',
  client: 'Gateway key for login nodes',
  issuer: 'Sign-in signing key',
  audit: 'Audit trail signing key',
};

function Sentence({ of: { keys, backup } }: { of: Installation }) {
  const moving = keys.filter(({ next, former }) => next ?? former).length;
  const { last, failure } = backup;
  return (
    <>
      {failure ? (
        'Backups fail. '
      ) : last ? (
        <>
          The last backup was made <Age at={last.at} />.{' '}
        </>
      ) : (
        'No backup is known. '
      )}
      {moving === 0 ? 'No key is being replaced.' : `${moving} of ${keys.length} keys are being replaced.`}
    </>
  );
}

function BackupFacts({ backup: { schedule, last, kept, failure, drill } }: { backup: Backup }) {
  return (
    <>
      {failure && (
        <div className="problem">
          <p>
            {failure.failures === 1 ? 'The last attempt' : `The last ${failure.failures} attempts`} failed,{' '}
            <Age at={failure.at} />: {failure.message}
          </p>
        </div>
      )}
      <Facts
        className="facts roomy-facts"
        of={{
          'Last backup': last ? (
            <>
              <Moment at={last.at} />, {formatBytes(last.bytes)}, <code>{last.file}</code>
            </>
          ) : (
            <State kind="warn">None known</State>
          ),
          'Last verified backup': kept ? <Moment at={kept.at} /> : <State kind="none">None scheduled</State>,
          'Last restore drill': <Drill of={drill} />,
          'Next due': schedule ? (
            <>
              <Moment at={schedule.due_at} />, to <code>{schedule.to}</code>
            </>
          ) : (
            <>
              Not scheduled: set <code>backup</code> in the configuration.
            </>
          ),
        }}
      />
    </>
  );
}

function Drill({ of: drill }: { of: Backup['drill'] }) {
  if (!drill)
    return (
      <>
        <State kind="warn">Never, on this host</State> <code>andromeda restore --drill</code> runs one.
      </>
    );
  return (
    <>
      <State kind={drill.good ? 'good' : 'bad'}>{drill.good ? 'Passed' : 'Failed'}</State>{' '}
      <Moment at={drill.at} />, of <code>{drill.file}</code>
    </>
  );
}

function KeyFacts({ keys: { kind, current, next, former } }: { keys: ServiceKeys }) {
  return (
    <>
      <Facts
        className="facts roomy-facts"
        of={{
          Active: <KeyLine of={current} />,
          'Next key, accepted already': next && <KeyLine of={next} />,
          'Former key, still accepted': former && <KeyLine of={former} />,
        }}
      />
      {!next && !former && (
        <>
          <h3>To replace it, on the service host</h3>
          <CopyLine text={`andromeda admin key new ${kind}`} label="the command" />
        </>
      )}
    </>
  );
}

function KeyLine({ of: { id, line, from, until } }: { of: ServiceKey }) {
  return (
    <>
      <code>{id}</code>{' '}
      {from !== undefined && (
        <span className="soft">
          used from <Moment at={from} />
        </span>
      )}
      {until !== undefined && (
        <span className="soft">
          until <Moment at={until} />
        </span>
      )}
      {line !== undefined && (
        <details>
          <summary>Public key</summary>
          <CopyLine text={line} label={`the key ${id}`} />
        </details>
      )}
    </>
  );
}
