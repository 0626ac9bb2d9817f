/** How long what the issuer signs stays good, in seconds. */

const minute = 60;

/** Good for a few minutes only: nothing but time ends an access token (RFC 9068 has no revocation). */
export const accessTokenSeconds = 10 * minute;
/** A Kubernetes API server does not ask whether an ID token is still valid. */
export const idTokenSeconds = 10 * minute;
