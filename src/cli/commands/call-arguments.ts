/** The arguments of `andromeda call`, parsed once: the contract's section "Command-line client". */
import { usage } from '../exit.ts';

export const apis = ['business', 'platform'] as const;
export type Api = (typeof apis)[number];

export interface CallArguments {
  api: Api;
  method: string;
  /** Begins with `/`, may carry a query. */
  path: string;
  headers: [string, string][];
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

/**
 * The headers that the client sets itself. `Authorization` is the session's; `Host` could lead the token to another site
 * behind the same address; the others would contradict the body that is sent.
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

/** Checks the arguments after the flags, and the headers. */
export function parseCall(args: readonly string[], headerLines: readonly string[]): CallArguments {
  const [api = '', method = '', path = ''] = args;
  const late = args.find((argument, index) => index > 0 && /^-./.test(argument));
  if (late !== undefined) throw usage(`Flags come before the API name; '${late}' stands after it.`);
  if (args.length > 3) throw usage(`'${args[3]}' is too much; call takes an API, a method and a path.`);
  if (!isApi(api)) throw usage(`'${api}' is not an API; the two are business and platform.`);
  if (!methods.includes(method.toUpperCase()))
    throw usage(`'${method}' is not a method; use ${methods.slice(0, -1).join(', ')} or ${methods.at(-1)}.`);
  return { api, method: method.toUpperCase(), path: parsePath(path), headers: headerLines.map(parseHeader) };
}

function isApi(value: string): value is Api {
  return apis.some((api) => api === value);
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
  // node:http writes strings as latin1; this puts the UTF-8 bytes on the wire, as curl does.
  return [name, Buffer.from(value, 'utf8').toString('latin1')];
}
