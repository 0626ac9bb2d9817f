/** `andromeda call`: one request, its body on stdout or one line on stderr. */

import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { buffer as readAll } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { visibleLine } from '../../domain/visible-text.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { failure, type Outcome, usage } from '../exit.ts';
import { readText, send } from '../net/request.ts';
import { describeTransport } from '../net/transport-error.ts';
import { join } from '../net/url.ts';
import { isClosedPipe, printMessage } from '../output.ts';
import { freshSession } from '../session/current.ts';
import { openLocalState } from '../session/local-state.ts';
import { authorization, type Session } from '../session/session.ts';
import { type Api, type CallArguments, parseCall } from './call-arguments.ts';

export interface CallOptions extends EnvironmentOptions {
  header?: string[];
  data?: string;
}

/** As much of a refusal as is shown; the contract's errors are far smaller. */
const failureLimit = 64 * 1024;

/** Runs the request that `args` and `options` describe (contract, "Command-line client"). */
export async function call(args: readonly string[], options: CallOptions): Promise<Outcome> {
  const request = parseCall(args, options.header ?? []);
  const selection = selectEnvironment(options);
  const body = options.data === undefined ? undefined : await readData(options.data);
  const session = await freshSession(openLocalState(), selection, Date.now);

  const url = addressOf(session, request);
  const headers = [...request.headers, ...contentType(request, body), authorization(session, url)];
  const response = await send({ method: request.method, url, headers, body });
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return succeed(response, url);
  return fail(request.api, status, response);
}

function addressOf(session: Session, { api, path }: CallArguments): URL {
  try {
    return join(api === 'business' ? session.businessUrl : session.platformUrl, path);
  } catch {
    throw usage(`'${path}' is not a path.`);
  }
}

async function readData(value: string): Promise<Buffer> {
  if (!value.startsWith('@')) return Buffer.from(value, 'utf8');
  if (value === '@-') return readAll(process.stdin);
  const path = value.slice(1);
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw failure(`The body cannot be read from '${path}': ${error.code ?? error.message}.`, error);
  });
}

function contentType({ headers }: CallArguments, body: Buffer | undefined): [string, string][] {
  if (body === undefined || headers.some(([name]) => name.toLowerCase() === 'content-type')) return [];
  return [['Content-Type', 'application/json']];
}

async function succeed(response: IncomingMessage, url: URL): Promise<Outcome> {
  try {
    await pipeline(response, process.stdout, { end: false });
    return 'ok';
  } catch (error) {
    throw isClosedPipe(error) ? error : describeTransport(error, url.origin);
  }
}

async function fail(api: Api, status: number, response: IncomingMessage): Promise<Outcome> {
  const body = await readText(response, failureLimit).catch(() => '');
  printMessage(visibleLine(`${api}: ${status} ${body}`));
  return 'failure';
}
