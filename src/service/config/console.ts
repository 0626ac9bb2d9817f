/** The web console in the configuration: its address, and its client at an external issuer. */
import { invalid, type NamedFiles } from './named-files.ts';
import { file, list, section, text, type Value } from './schema.ts';

export const consoleClientSchema = section(
  { clientId: text, clientSecretFile: file, scopes: list(text, { minItems: 1 }) },
  ['clientId', 'clientSecretFile'],
);

export type ConsoleClient = ReturnType<typeof readConsoleClient>;

export function readConsoleClient(given: Value<typeof consoleClientSchema>, files: NamedFiles) {
  const clientSecretFile = files.at(given.clientSecretFile);
  const name = 'identity.console.clientSecretFile';
  const clientSecret = files.readSecretText(name, clientSecretFile);
  if (clientSecret === '') throw invalid(`${name}: ${clientSecretFile} is empty.`);
  return { clientId: given.clientId, clientSecretFile, clientSecret, scopes: given.scopes };
}

/** Throws `invalid_request` where the console's address is unsuitable, or its client is missing. */
export function checkConsole({
  console,
  identity,
}: {
  console: { url: string } | undefined;
  identity: { issuer: string | undefined; console: ConsoleClient | undefined };
}): void {
  const { issuer } = identity;
  // Cookies are for a whole origin, and the issuer sends people back to an address of it.
  if (console && new URL(console.url).origin !== console.url)
    throw invalid(
      `console.url is ${console.url}; give an address without a path, such as https://console.example.org.`,
    );
  if (identity.console && issuer === undefined)
    throw invalid(
      'identity.console: the embedded issuer makes the client of the console by itself; leave it out.',
    );
  if (console && issuer !== undefined && !identity.console)
    throw invalid(
      `console: register the console at ${issuer} (redirect address ${console.url}/sign-in/callback), and give identity.console.clientId and clientSecretFile.`,
    );
}
