/** Explains why an issuer's tokens are refused, and revokes them then: for the command line and the console. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { SignInRefusal } from '../domain/error.ts';
import { cutText, visibleLine } from '../domain/text.ts';
import { clockToleranceMs } from './clock.ts';

/** The details in openid-client's error about a refused claim, or about the issuer's metadata. */
interface ErrorDetails {
  claim?: string;
  attribute?: string;
  /** Seconds since 1970. */
  now?: number;
  claims?: Record<string, unknown>;
  body?: Record<string, unknown>;
  expected?: unknown;
}

/**
 * The refusal for an error of openid-client about the issuer's clock, its name or the audience of its ID token;
 * undefined for any other. `here`: the machine that the program runs on.
 */
export function issuerFault(error: unknown, here: string): SignInRefusal | undefined {
  const { claim, attribute, now = 0, claims = {}, body = {}, expected } = factsOf(error);
  const refusal = (...[reason, message]: ConstructorParameters<typeof SignInRefusal>) =>
    new SignInRefusal(reason, message, { cause: error });
  if (claim === 'exp' || claim === 'nbf') {
    const apart = Math.abs(now - Number(claims['iat']));
    if (!(apart > clockToleranceMs / 1000))
      return refusal('clock', `The clock of ${here} or of the issuer is wrong.`);
    return refusal('clock', `The clocks of ${here} and of the issuer are ${apart} seconds apart.`);
  }
  if (claim === 'iss' || attribute === 'issuer') {
    const found = shownClaim(claim ? claims['iss'] : body['issuer']);
    return refusal('issuer', `The issuer calls itself ${found}; expected was ${shownClaim(expected)}.`);
  }
  if (claim !== 'aud' && claim !== 'azp') return undefined;
  const wanted =
    expected === undefined
      ? 'which of them asked is not said: have the issuer name one alone, or add azp'
      : `expected was ${shownClaim(expected)}`;
  return refusal('audience', `The ID token of the issuer is for ${shownClaim(claims[claim])}; ${wanted}.`);
}

/** The values of a claim, for a sentence. */
export function shownClaim(value: unknown): string {
  const texts = [value ?? []].flat().map(String);
  return visibleLine(cutText(texts.join(', '), 200)) || 'nothing';
}

/** The details are the innermost cause: openid-client wraps the error of the library below it. */
function factsOf(error: unknown): ErrorDetails {
  let found = error;
  while (found instanceof Error) found = found.cause;
  return typeof found === 'object' && found !== null ? found : {};
}

interface TokenRequest {
  given?: { [token in 'access_token' | 'refresh_token']?: unknown } | undefined;
}

const asking = new AsyncLocalStorage<TokenRequest>();

/** Wraps the fetch of an issuer's client, so that `orRevoke` knows the tokens: openid-client keeps none that it refuses. */
export function notingTokens<A extends unknown[]>(send: (...request: A) => Promise<Response>) {
  return async (...request: A): Promise<Response> => {
    const response = await send(...request);
    const asked = asking.getStore();
    if (asked && response.ok)
      asked.given = (await response
        .clone()
        .json()
        .catch(() => undefined)) as TokenRequest['given'];
    return response;
  };
}

/** Resolves to the result of `ask`. Where that throws, revokes the tokens that the issuer gave, without waiting. */
export async function orRevoke<T>(
  ask: () => Promise<T>,
  revoke: (token: string, hint: string) => Promise<unknown>,
): Promise<T> {
  const asked: TokenRequest = {};
  try {
    return await asking.run(asked, ask);
  } catch (error) {
    const hint = asked.given?.refresh_token === undefined ? 'access_token' : 'refresh_token';
    const token = asked.given?.[hint];
    if (typeof token === 'string') revoke(token, hint).catch(() => {});
    throw error;
  }
}
