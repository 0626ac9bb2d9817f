/** The pages of the step after the password. */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { renderSVG } from 'uqr';
import { type Html, html, trusted } from '../../../../lib/pages/html.ts';
import { layout, problem } from '../../../../lib/pages/layout.ts';
import { pageHeaders, sendPage } from '../respond.ts';
import { appAddress } from './second-factor.ts';
import type { Step } from './second-step.ts';

interface StepPage {
  /** Where the form goes, and what it carries of the sign-in that it is for. */
  action: string;
  carried: { name: string; value: string };
  csrf: string;
  step: Step;
}

/** The one script of our pages: it asks the browser for a passkey, which only a script can. Hidden where there are none. */
const script = `
const form = document.getElementById('passkey');
const said = document.getElementById('passkey-problem');
const { method, options } = JSON.parse(form.dataset.request);
const parse = method === 'create' ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON';
form.hidden = !window.PublicKeyCredential?.[parse];
form.addEventListener('submit', async (event) => {
  event.preventDefault();
  said.hidden = true;
  try {
    const publicKey = PublicKeyCredential[parse](options);
    form.elements.passkey.value = JSON.stringify(await navigator.credentials[method]({ publicKey }));
    form.submit();
  } catch (error) {
    said.textContent = 'That did not work. Your browser says: ' + error.message;
    said.hidden = false;
  }
});
`;
const scriptPolicy = `; script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`;

/** Its policy allows the script besides what `headers`, or those of all pages, do. */
export function sendStep(res: ServerResponse, page: StepPage, headers: Record<string, string> = {}): void {
  const all = { ...pageHeaders, ...headers };
  all['Content-Security-Policy'] += scriptPolicy;
  sendPage(res, page.step.status, stepPage(page), all);
}

function stepPage({ action, carried, csrf, step }: StepPage): string {
  const form = (
    fields: Html,
    button: string,
    { isSecond = false, passkey = '' } = {},
  ) => html`<form method="post"
 action="${action}"${passkey === '' ? undefined : html` id="passkey" data-request="${passkey}" hidden`}>
<input type="hidden" name="csrf" value="${csrf}">
<input type="hidden" name="${carried.name}" value="${carried.value}">
<input type="hidden" name="proven" value="${step.proven}">
${fields}
<button${isSecond ? html` class="second"` : undefined} type="submit">${button}</button>
</form>`;
  const byPasskey = (button: string, isSecond: boolean) =>
    step.passkey &&
    html`${form(html`<input type="hidden" name="passkey">`, button, { isSecond, passkey: JSON.stringify(step.passkey) })}
<p class="message bad" role="alert" id="passkey-problem" hidden></p>
<script>${trusted(script)}</script>`;
  const code = (label: string, length: number) => html`<label for="code">${label}</label>
<input class="code" id="code" name="code" required maxlength="${length}" autofocus autocomplete="one-time-code"
 inputmode="${length > 10 ? 'text' : 'numeric'}" autocapitalize="none" spellcheck="false">`;
  if (step.stage === 'codes') return codesPage(step.codes ?? [], form);
  if (step.stage === 'setup') {
    const address = appAddress(step.secret ?? '', step.email);
    return layout(
      'Set up a second factor',
      html`<h1>Set up a second factor</h1>
<p class="soft">Add ${step.email} to an authenticator app: with this picture, or with the key below it.</p>
${problem(step.message)}
<div class="picture">${trusted(renderSVG(address, { border: 2 }))}</div>
<p class="small"><code>${(step.secret?.match(/.{1,4}/g) ?? []).join(' ')}</code></p>
${form(code('The code that the app shows now', 10), 'Set it up')}
${byPasskey('Use a passkey instead', true)}`,
    );
  }
  const kinds = step.hasApp ? 'The one that your authenticator app shows now, or one' : 'One';
  const isSecond = step.passkey !== undefined;
  return layout(
    isSecond ? 'Use your passkey' : 'Enter a code',
    html`<h1>${isSecond ? 'Use your passkey' : 'Enter a code'}</h1>
${problem(step.message)}
${byPasskey('Use your passkey', false)}
<p class="soft after">${isSecond ? 'Or a code. ' : undefined}${kinds} of your recovery codes.</p>
${form(code('Code', 40), 'Continue', { isSecond })}
<p class="small soft after">None of these? Ask the people who run this installation.</p>`,
  );
}

function codesPage(codes: readonly string[], form: (fields: Html, button: string) => Html): string {
  return layout(
    'Your recovery codes',
    html`<h1>Your recovery codes</h1>
<p class="soft">Each lets you in once, when the app or passkey is lost. They are shown only now: keep them apart from it.</p>
<ul class="codes">${codes.map((one) => html`<li><code>${one}</code></li>`)}</ul>
${form(html`<p class="small soft">Those from before are good no more.</p>`, 'I have kept them')}`,
  );
}
