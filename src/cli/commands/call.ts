/** `andromeda call`: sends one request; prints the body to stdout, or one line to stderr. */

import { readFile } from 'node:fs/promises';
import { buffer as readAll } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { commandIo } from '../../lib/command-io.ts';
import { fileReason } from '../../lib/error-message.ts';
import { type EnvironmentOptions, selectEnvironment } from '../environment.ts';
import { failure, usage } from '../exit.ts';
import { describeTransport, readText, urlAt } from '../net/request.ts';
import { isClosedPipe } from '../output.ts';
import { openLocalState, type Session, sendSigned } from '../session/local-state.ts';

interface CallArguments {
  api: 'business' | 'platform';
  method: string;
  path: string;
  headers: [string, string][];
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

/**
 * Headers that only the client sets. `Authorization` is the session's; `Host` could send the token to another site at the
 * same address; the others would contradict the body.
 */
const reserved = [
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'proxy-authorization',
  'transfer-encoding',
  'upgrade',
];

export function parseCall(args: readonly string[], headerLines: readonly string[]): CallArguments {
  const [api = '', method = '', path = ''] = args;
  const late = args.find((argument, index) => index > 0 && /^-./.test(argument));
  if (late !== undefined) throw usage(`Flags come before the API name; '${late}' stands after it.`);
  if (args.length > 3) throw usage(`'${args[3]}' is too much; call takes an API, a method and a path.`);
  if (api !== 'business' && api !== 'platform')
    throw usage(`'${api}' is not an API; the two are business and platform.`);
  if (!methods.includes(method.toUpperCase()))
    throw usage(`'${method}' is not a method; use ${methods.slice(0, -1).join(', ')} or ${methods.at(-1)}.`);
  return { api, method: method.toUpperCase(), path: parsePath(path), headers: headerLines.map(parseHeader) };
}

function parsePath(path: string): string {
  if (!path.startsWith('/')) throw usage(`The path begins with '/'; '${path}' does not.`);
  if (path.includes('#')) throw usage("The path has no fragment; write '#' as %23.");
  return path;
}

function parseHeader(line: string): [string, string] {
  const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? [];
  if (name === undefined || value === undefined || /[^\P{Cc}\t]/u.test(value))
    throw usage(`'${line.replace(/\p{Cc}/gu, ' ')}' is not a header; write 'Name: value'.`);
  if (reserved.includes(name.toLowerCase()))
    throw usage(`The header ${name} may not be given; the client sets it itself.`);
  // node:http writes strings as latin1; this sends the UTF-8 bytes, as curl does.
  return [name, Buffer.from(value, 'utf8').toString('latin1')];
}

export interface CallOptions extends EnvironmentOptions {
  header?: string[];
  data?: string;
}

/** Limit of a refusal's printed body; the contract's errors are far smaller. */
const failureLimit = 64 * 1024;

/** Sends the request of `args` and `options` (contract, "Command-line client"). */
export async function call(args: readonly string[], options: CallOptions): Promise<void> {
  const request = parseCall(args, options.header ?? []);
  const selection = selectEnvironment(options);
  const body = options.data === undefined ? undefined : await readData(options.data);
  const { method } = request;
  const headers = [...request.headers, ...contentType(request, body)];
  const requestOf = (session: Session) => ({ method, url: addressOf(session, request), headers, body });
  const { response, url } = await sendSigned(openLocalState(), selection, requestOf);
  const status = response.statusCode ?? 0;
  if (status < 200 || status >= 300)
    throw failure(`${request.api}: ${status} ${await readText(response, failureLimit).catch(() => '')}`);
  await pipeline(response, commandIo().stdout, { end: false }).catch((error: unknown) => {
    throw isClosedPipe(error) ? error : describeTransport(error, url.origin);
  });
}

function addressOf(session: Session, { api, path }: CallArguments): URL {
  try {
    return urlAt(api === 'business' ? session.businessUrl : session.platformUrl, path);
  } catch {
    throw usage(`'${path}' is not a path.`);
  }
}

async function readData(value: string): Promise<Buffer> {
  if (!value.startsWith('@')) return Buffer.from(value, 'utf8');
  if (value === '@-') return readAll(commandIo().stdin);
  const path = value.slice(1);
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw failure(`The body cannot be read from '${path}': ${fileReason(error)}.`, error);
  });
}

function contentType({ headers }: CallArguments, body: Buffer | undefined): [string, string][] {
  if (body === undefined || headers.some(([name]) => name.toLowerCase() === 'content-type')) return [];
  return [['Content-Type', 'application/json']];
}
