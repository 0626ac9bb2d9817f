/**
 * A login into a job: logs in to the login node as the person, starts a step of the job there, and runs SSH once more
 * over its standard input and output, to an OpenSSH server in the step (enter-script.ts) with a host key made here
 * for this connection.
 */
import { blobOf, generateSshKey } from '../../../lib/ssh/public-key.ts';
import { DISCONNECT, SSH } from '../../../lib/ssh/wire.ts';
import { logIn, type NodeFailure, type NodeOptions, openLoginNode } from '../relay/login-node.ts';
import { printable } from '../relay/policy.ts';
import { offerToNode } from '../transport/algorithms.ts';
import { ChannelStream } from '../transport/channel-stream.ts';
import { Transport } from '../transport/transport.ts';
import { enterJobInput, enterJobLine } from './enter-script.ts';

export interface EnteredJob {
  /** As `squeue` prints it. Reported by a process of the person, so not confirmed. */
  id: string;
  node: string;
  /** Carries the connection into the job: it needs keepalives, and is closed last. */
  loginNode: Transport;
  /** The reason why the step ended; undefined while it runs. */
  ended?: string;
}

export interface JobOptions extends Omit<NodeOptions, 'onUp'> {
  /** Shows the person a line about the job that the session is in. */
  onNotice(text: string): void;
  /** Called once, synchronously with the message of the successful login; `job` is left out where the route leads into none. */
  onUp(node: Transport, job?: EnteredJob): void;
}

const longestLine = 1_000;
const mostListed = 10;
/** Timeout of Slurm's start of a step, which starts a program on another machine. */
const enterMs = 30_000;

/** Logs in where the route leads: to its login node, or from there into a job. The function returned gives up, or ends the job's step. */
export function openNode(options: JobOptions): () => void {
  if (!options.route.job) return openLoginNode(options);
  let entry: JobEntry | undefined;
  const onUp = (loginNode: Transport) => {
    entry = new JobEntry(options, loginNode);
  };
  const giveUp = openLoginNode({ ...options, onUp });
  return () => {
    giveUp();
    entry?.end('the person has gone');
  };
}

class JobEntry {
  readonly #options: JobOptions;
  readonly #loginNode: Transport;
  readonly #late: NodeJS.Timeout;
  #job: EnteredJob | undefined;
  #line = '';
  #listed: string[] = [];
  #refusal = '';
  #lastLine = '';
  /** The message of Slurm's last error. */
  #slurmError = '';
  #settled = false;

  constructor(options: JobOptions, loginNode: Transport) {
    const { barrier, limits, cipher, handshakeMs, route, keys } = options;
    const [key] = keys;
    this.#options = options;
    this.#loginNode = loginNode;
    this.#late = barrier.after(enterMs, () => this.#fail('Slurm takes too long to start a step in the job.'));
    const hostKey = generateSshKey();
    const expected = blobOf(hostKey.publicKey);
    const channel = new ChannelStream({
      transport: loginNode,
      barrier,
      to: { command: enterJobLine(route.job ?? {}), onError: (text) => this.#onText(text) },
    });
    const authorized = `ssh-ed25519 ${key.getPublicSSH().toString('base64')}`;
    channel.write(enterJobInput(authorized, hostKey.privateKey));
    const node = new Transport({
      ...{ socket: channel, barrier, limits, handshakeMs },
      offer: offerToNode(cipher),
      verifyHostKey: (blob) => blob.equals(expected),
      onReady: () => logIn(node, route.username, key),
    });
    node.onMessage = ([type]) => {
      if (type === SSH.USERAUTH_SUCCESS) this.#onUp(node);
      else if (type === SSH.USERAUTH_FAILURE) this.#fail('The job’s node does not let your account in.');
    };
    node.onEnd = ({ text }) => this.#fail(this.#refusal || 'The step in the job ended at once.', text);
  }

  /** Ends the step, and the connection that carries it. */
  end(text: string): void {
    this.#settle();
    this.#loginNode.close(DISCONNECT.BY_APPLICATION, text, this.#options.limits.lingerMs);
  }

  #onUp(node: Transport): void {
    if (!this.#job) this.#fail('The step in the job did not say where it runs.');
    else if (this.#settle()) {
      node.trust();
      this.#options.onUp(node, this.#job);
    }
  }

  #fail(text: string, detail = this.#lastLine): void {
    if (!this.#settle()) return;
    this.end('giving up');
    const banner = ['Your jobs that run now:', ...this.#listed].join('\r\n  ');
    const failure: NodeFailure = { reason: 'job', text, detail: `${detail} ${this.#lastLine}`.trim() };
    this.#options.onFailure(this.#listed.length > 0 ? { ...failure, banner } : failure);
  }

  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#late);
    return true;
  }

  #onText(text: string): void {
    const lines = `${this.#line}${text}`.split('\n');
    this.#line = (lines.pop() ?? '').slice(0, longestLine);
    for (const line of lines) this.#onLine(printable(line.slice(0, longestLine), longestLine));
  }

  #onLine(line: string): void {
    // The line may begin with output of a start-up file of the account that had no line end.
    const [, verb, rest = ''] = /andromeda-job (\w+) (.*)$/.exec(line) ?? [];
    const [id = '', node = '', name = ''] = rest.split('|');
    if (verb === undefined) this.#onOtherLine(line);
    else if (verb === 'in') this.#job ??= { id, node, loginNode: this.#loginNode };
    else if (verb === 'job' && this.#listed.length < mostListed)
      this.#listed.push(`${id} on ${node}: ${name}`);
    else if (verb === 'refused') this.#refusal = rest;
    else if (verb === 'left')
      this.#options.onNotice(`Job ${this.#job?.id} ends in ${minutes(Number(rest))}.`);
    else if (verb === 'ended') this.#onEnded(rest);
  }

  #onOtherLine(line: string): void {
    if (line.trim() !== '') this.#lastLine = line;
    const [, error] = /^(?:srun|slurmstepd): error: (.+)$/.exec(line) ?? [];
    if (error) this.#slurmError = error;
  }

  #onEnded(rest: string): void {
    const [state = ''] = rest.split(' ');
    const text = endText(this.#job?.id ?? '', state, this.#slurmError);
    this.#refusal ||= text;
    if (this.#job) this.#job.ended = text;
  }
}

/** Final states of a job (squeue(1), JOB STATE CODES), without those in which it waits to run again. */
const over =
  /^(BOOT_FAIL|CANCELLED|COMPLETED|DEADLINE|FAILED|NODE_FAIL|OUT_OF_MEMORY|PREEMPTED|REVOKED|TIMEOUT)$/;
const waitsAgain = /^(PENDING|REQUEUED|REQUEUE_FED|REQUEUE_HOLD|SPECIAL_EXIT)$/;

function endText(id: string, state: string, error: string): string {
  if (over.test(state)) return `Job ${id} ended (${state}).`;
  if (waitsAgain.test(state)) return `Job ${id} went back into the queue and waits to run again.`;
  return error === '' ? 'The step in the job ended.' : `The step in the job ended. Slurm says: ${error}`;
}

function minutes(seconds: number): string {
  const count = Math.max(1, Math.round(seconds / 60));
  return count === 1 ? 'a minute' : `${count} minutes`;
}
