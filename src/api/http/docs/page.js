/**
 * The script of /docs, put into the page as it stands here: signs a person in by the device flow (RFC 8628) and sends
 * what the "Try it" forms say. The access token is in one variable, in no storage and in no address, and gone with the
 * page. Data from other sources enters the page as text only.
 */

/** A sentence for the person. */
class Refusal extends Error {}

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';
/** Reply headers that say nothing of the call. */
const plumbing = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding']);

const { url: apiUrl = '', issuer = '', client = '', scope = '' } = find('#page', HTMLElement).dataset;
const who = find('#who', HTMLElement);
const signInButton = find('#sign-in', HTMLButtonElement);
const signOutButton = find('#sign-out', HTMLButtonElement);
const cancelButton = find('#cancel', HTMLButtonElement);
const paste = find('#paste', HTMLDetailsElement);
const tokenField = find('#token', HTMLInputElement);
const device = find('#device', HTMLElement);

let accessToken = '';
/** @type {ReturnType<typeof setTimeout> | undefined} */
let ending;
/** @type {AbortController | undefined} */
let attempt;

// ---- Signing in

async function signIn() {
  attempt = new AbortController();
  const { signal } = attempt;
  showStatus('Asking the sign-in service…');
  showButtons();
  cancelButton.focus();
  try {
    const endpoints = await discover(signal);
    const asked = await ask(endpoints.device, { client_id: client, scope, ...endpoints.resource }, signal);
    if (typeof asked.device_code !== 'string') throw refused(asked);
    showCode(asked);
    const answer = await poll(endpoints.token, asked, signal);
    useToken(String(answer.access_token), Number(answer.expires_in));
  } catch (error) {
    if (signal.aborted) return;
    showStatus(error instanceof Refusal ? error.message : unreachable());
    if (!(error instanceof Refusal)) paste.open = true;
  } finally {
    // The person may have cancelled, and begun again.
    if (attempt?.signal === signal) stopAttempt();
  }
}

/** @param {AbortSignal} signal */
async function discover(signal) {
  const address = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const metadata = await fetchJson(address, { signal });
  if (metadata.issuer !== issuer) throw new Refusal(`${issuer} describes itself as another sign-in service.`);
  const { device_authorization_endpoint: start, token_endpoint: token } = metadata;
  if (typeof start !== 'string' || typeof token !== 'string') {
    paste.open = true;
    throw new Refusal(`${issuer} offers no sign-in for pages like this one. Use an access token instead.`);
  }
  // Named where the issuer knows it, so that its approval page can say what the token is for (RFC 8707, RFC 9728).
  const { protected_resources: served } = metadata;
  const resource = Array.isArray(served) && served.includes(apiUrl) ? { resource: apiUrl } : {};
  return { device: start, token, resource };
}

/**
 * Asks for the token until there is an answer, at the pace that the issuer says (RFC 8628, section 3.5).
 * @param {string} endpoint
 * @param {Record<string, unknown>} asked
 * @param {AbortSignal} signal
 */
async function poll(endpoint, asked, signal) {
  const fields = { grant_type: deviceGrant, device_code: String(asked.device_code), client_id: client };
  const deadline = Date.now() + Number(asked.expires_in) * 1000;
  let seconds = Number(asked.interval) || 5;
  while (Date.now() < deadline) {
    await pause(seconds * 1000, signal);
    // A connection that fails now may work again: then more slowly, as for slow_down.
    const answer = await ask(endpoint, fields, signal).catch(() => ({ error: 'slow_down' }));
    signal.throwIfAborted();
    if ('access_token' in answer) return answer;
    if (answer.error === 'slow_down') seconds += 5;
    else if (answer.error !== 'authorization_pending') throw refused(answer);
  }
  throw refused({ error: 'expired_token' });
}

/** @param {Record<string, unknown>} answer */
function refused({ error, error_description: description }) {
  if (error === 'access_denied') return new Refusal('The sign-in was denied.');
  if (error === 'expired_token') return new Refusal('Nobody approved the sign-in in time. Sign in again.');
  return new Refusal(`The sign-in service refused: ${description ?? error ?? 'it gave no reason'}.`);
}

/** @param {string} endpoint @param {Record<string, string>} fields @param {AbortSignal} signal */
function ask(endpoint, fields, signal) {
  return fetchJson(endpoint, { method: 'POST', body: new URLSearchParams(fields), signal });
}

/** @param {string} address @param {RequestInit} options @returns {Promise<Record<string, unknown>>} */
async function fetchJson(address, options) {
  const fixed = /** @type {const} */ ({ credentials: 'omit', cache: 'no-store', redirect: 'error' });
  return (await fetch(address, { ...fixed, ...options })).json();
}

function unreachable() {
  const home = new URL(apiUrl);
  // A browser does not tell a page which of the two it was.
  return home.origin === location.origin
    ? `${issuer} cannot be reached, or does not let this page sign you in. Use an access token instead.`
    : `Signing in works where this API is at home: open ${apiUrl}/docs, or use an access token.`;
}

/** @param {Record<string, unknown>} asked */
function showCode({ user_code: code, verification_uri: plain, verification_uri_complete: complete }) {
  const address = new URL(String(complete ?? plain));
  if (!/^https?:$/.test(address.protocol))
    throw new Refusal(`${issuer} sent an address that is no web page.`);
  showStatus('Waiting for you to approve the sign-in…');
  const link = find('#verify', HTMLAnchorElement);
  link.href = address.href;
  find('#code', HTMLElement).textContent = String(code);
  device.hidden = false;
  link.focus();
}

/** @param {string} token @param {number} seconds How long it is good for, where that is known. */
function useToken(token, seconds) {
  const claims = claimsOf(token);
  const until = Number.isFinite(seconds) ? Date.now() + seconds * 1000 : Number(claims.exp) * 1000;
  if (until <= Date.now()) return showStatus('This access token has expired.');
  accessToken = token;
  const end = Number.isFinite(until) ? ` until ${new Date(until).toLocaleTimeString()}` : '';
  showStatus(`Signed in${claims.email ? ` as ${claims.email}` : ''}${end}.`);
  clearTimeout(ending);
  const delay = Math.min(until - Date.now(), 2 ** 31 - 1);
  if (end) ending = setTimeout(() => forgetToken('The sign-in has ended. Sign in again to go on.'), delay);
  showButtons();
}

/** What a token that is a JWT says, to show it; the API checks it. @param {string} token */
function claimsOf(token) {
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (character) => character.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return {};
  }
}

/** @param {string} sentence */
function forgetToken(sentence) {
  accessToken = '';
  clearTimeout(ending);
  showStatus(sentence);
  showButtons();
}

function stopAttempt() {
  attempt?.abort();
  attempt = undefined;
  device.hidden = true;
  showButtons();
}

function showButtons() {
  signInButton.hidden = attempt !== undefined || accessToken !== '';
  cancelButton.hidden = attempt === undefined;
  signOutButton.hidden = accessToken === '';
  paste.hidden = accessToken !== '';
}

// ---- Trying a call

/** @param {HTMLFormElement} form */
async function send(form) {
  if (form.ariaBusy === 'true') return;
  form.ariaBusy = 'true';
  const status = find('.status', HTMLElement, form);
  status.textContent = 'Sending…';
  try {
    const started = performance.now();
    const { address, ...request } = requestOf(form);
    const reply = await fetch(address, {
      ...request,
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'manual',
    });
    const text = await reply.text();
    const took = Math.round(performance.now() - started);
    status.textContent = `${reply.status} ${reply.statusText} · ${took} ms${accessToken ? '' : ' · not signed in'}`;
    status.classList.toggle('bad', !reply.ok);
    const headers = [...reply.headers].filter(([name]) => !plumbing.has(name));
    show(form, '.headers', headers.map(([name, value]) => `${name}: ${value}`).join('\n'));
    show(form, '.reply', pretty(text));
    // The same request again is answered with the first result; another one needs another key.
    form.dataset.done = String(reply.ok);
  } catch (error) {
    status.textContent = `No reply: ${error instanceof Error ? error.message : error}`;
    status.classList.add('bad');
    show(form, '.headers', '');
    show(form, '.reply', '');
  } finally {
    form.ariaBusy = null;
  }
}

/** @param {HTMLFormElement} form */
function requestOf(form) {
  const headers = new Headers(accessToken ? { Authorization: `Bearer ${accessToken}` } : {});
  const query = new URLSearchParams();
  let path = form.dataset.path ?? '';
  /** @type {string | null} */
  let body = null;
  for (const { name, value, dataset } of fieldsOf(form)) {
    if (dataset.in === 'path') path = path.replace(`{${name}}`, () => encodeURIComponent(value));
    else if (dataset.in === 'header') headers.set(name, utf8(value));
    else if (dataset.in === 'body') body = value;
    else if (value !== '') query.append(name, value);
  }
  if (body !== null) headers.set('Content-Type', 'application/json');
  const base = location.pathname.replace(/\/docs\/?$/, '');
  const address = `${base}${path}${query.size > 0 ? `?${query}` : ''}`;
  return { address, method: form.dataset.method ?? 'GET', headers, body };
}

/** A header's value as the bytes of UTF-8, which the API reads and fetch would refuse. @param {string} value */
function utf8(value) {
  return Array.from(new TextEncoder().encode(value), (byte) => String.fromCharCode(byte)).join('');
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** @param {Event} event A change of a field. */
function changed({ currentTarget: form, target: field }) {
  if (!(form instanceof HTMLFormElement && field instanceof HTMLElement)) return;
  if (form.dataset.done === 'true' && field.getAttribute('name') !== 'Idempotency-Key') newKey(form);
}

/** @param {HTMLFormElement} form */
function newKey(form) {
  delete form.dataset.done;
  for (const field of fieldsOf(form)) if (field.name === 'Idempotency-Key') field.value = crypto.randomUUID();
}

/** An ID typed once stands in the other forms too. @param {Event} event */
function spread({ target: field }) {
  if (!(field instanceof HTMLInputElement && field.dataset.in !== 'header')) return;
  for (const form of forms) {
    for (const other of fieldsOf(form)) {
      if (other.name === field.name && other.required && other.value === '') other.value = field.value;
    }
  }
}

// ---- The page

/** @param {HTMLFormElement} form @returns {NodeListOf<HTMLInputElement>} Selects and text areas, too. */
function fieldsOf(form) {
  return form.querySelectorAll('[data-in]');
}

/** @param {HTMLFormElement} form @param {string} selector @param {string} text */
function show(form, selector, text) {
  const output = find(selector, HTMLElement, form);
  output.textContent = text;
  output.hidden = text === '';
}

/** @param {string} sentence */
function showStatus(sentence) {
  who.textContent = sentence;
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/**
 * @template {HTMLElement} T
 * @param {string} selector
 * @param {new () => T} kind
 * @param {ParentNode} within
 * @returns {T}
 */
function find(selector, kind, within = document) {
  const found = within.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`The page has no ${selector}.`);
  return found;
}

/** @type {NodeListOf<HTMLFormElement>} */
const forms = document.querySelectorAll('form.try');
for (const form of forms) {
  newKey(form);
  form.hidden = false;
  form.addEventListener('input', changed);
  form.addEventListener('change', spread);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    send(form);
  });
}
signInButton.addEventListener('click', signIn);
signOutButton.addEventListener('click', () => forgetToken('Signed out.'));
cancelButton.addEventListener('click', () => {
  stopAttempt();
  showStatus('Not signed in.');
});
find('#paste-form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  const token = tokenField.value.trim();
  tokenField.value = '';
  stopAttempt();
  useToken(token, Number.NaN);
});
find('#session', HTMLElement).hidden = false;
