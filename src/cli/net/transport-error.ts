/** Failures below HTTP, as sentences for people. */
import { CliError } from '../exit.ts';

const reasons: Record<string, string> = {
  ECONNREFUSED: 'the connection was refused',
  EPIPE: 'the connection was closed before the whole request was sent',
  ECONNRESET: 'the connection was closed before the whole answer came',
  UND_ERR_SOCKET: 'the connection was closed before the whole answer came',
  ENOTFOUND: 'the host name is not known',
  EAI_AGAIN: 'the host name could not be looked up',
  ETIMEDOUT: 'the connection timed out',
  EHOSTUNREACH: 'there is no route to the host',
  ENETUNREACH: 'the network is unreachable',
  EPROTO: 'it does not speak TLS as expected',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS',
  CERT_HAS_EXPIRED: 'its TLS certificate has expired',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its TLS certificate is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT:
    'its TLS certificate is signed by itself; NODE_EXTRA_CA_CERTS names one to trust',
  SELF_SIGNED_CERT_IN_CHAIN: 'its TLS authority is not trusted here; NODE_EXTRA_CA_CERTS names one to trust',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    'its TLS authority is not known here; NODE_EXTRA_CA_CERTS names one to trust',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'its TLS authority is not known here; NODE_EXTRA_CA_CERTS names one to trust',
};

/** One sentence for an error of a connection to `origin`; a sentence of our own passes unchanged. */
export function describeTransport(error: unknown, origin: string): CliError {
  if (error instanceof CliError) return error;
  const code = codeOf(error) ?? '';
  const reason = reasons[code] ?? (code.startsWith('HPE_') ? 'it does not speak HTTP' : messageOf(error));
  return new CliError('unreachable', `Could not reach ${origin}: ${reason}.`, { cause: error });
}

/** The system's code for an error, searched in its causes too (fetch hides it there). */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('code' in error && typeof error.code === 'string' && error.code in reasons) return error.code;
  const deeper = codeOf(error.cause);
  if (deeper !== undefined) return deeper;
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return (error.cause instanceof Error ? error.cause.message : error.message).replace(/\.$/, '');
}
