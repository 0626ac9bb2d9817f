/** The web console in the configuration: where it is, and its client at an external issuer. */
import { invalid, type NamedFiles } from './named-files.ts';

export interface ConsoleClient {
  clientId: string;
  clientSecretFile: string;
  clientSecret: string;
}

type RawConsoleClient = Omit<ConsoleClient, 'clientSecret'>;

const text = { type: 'string', minLength: 1 };
export const consoleClientSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['clientId', 'clientSecretFile'],
  properties: { clientId: text, clientSecretFile: text },
};

/** The secret is in a file that only the service's account may read. */
export function readConsoleClient(
  files: NamedFiles,
  file: string,
  { clientId, clientSecretFile: path }: RawConsoleClient,
): ConsoleClient {
  const clientSecretFile = files.at(path);
  const name = 'identity.console.clientSecretFile';
  const clientSecret = files.readSecret(name, clientSecretFile).toString('utf8').trim();
  if (clientSecret === '') throw invalid(file, `${name}: ${clientSecretFile} is empty.`);
  return { clientId, clientSecretFile, clientSecret };
}

/** Throws `invalid_request` where the address of the console will not do, or its client is missing. */
export function checkConsole(
  file: string,
  config: {
    console: { url: string } | undefined;
    identity: { issuer: string | undefined; console: ConsoleClient | undefined };
  },
): void {
  const { console, identity } = config;
  const { issuer } = identity;
  // Cookies are for all of an origin, and the issuer sends people back to an address of it.
  if (console && new URL(console.url).origin !== console.url) {
    const wanted = 'give an address without a path, such as https://console.example.org';
    throw invalid(file, `console.url is ${console.url}; ${wanted}.`);
  }
  if (identity.console && issuer === undefined) {
    const why = 'the embedded issuer makes the client of the console by itself; leave it out';
    throw invalid(file, `identity.console: ${why}.`);
  }
  if (!console || issuer === undefined || identity.console) return;
  throw invalid(
    file,
    `console: register the console at ${issuer} (redirect address ${console.url}/sign-in/callback), and give identity.console.clientId and clientSecretFile.`,
  );
}
