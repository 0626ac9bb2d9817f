import { html } from '../../../lib/pages/html.ts';
import { layout, problem } from '../../../lib/pages/layout.ts';

/** Where a person types the code that their terminal shows (RFC 8628, section 3.3). */
export function codePage({ message }: { message?: string | undefined }): string {
  return layout(
    'Enter the code',
    html`<h1>Enter the code</h1>
<p class="soft">Your terminal shows a code of eight letters.</p>
${problem(message)}
<form method="get" action="/device">
<label for="user_code">Code</label>
<input class="code" id="user_code" name="user_code" placeholder="BCDF-GHJK" required maxlength="20" autofocus
 autocomplete="off" autocapitalize="characters" spellcheck="false">
<button type="submit">Continue</button>
</form>`,
  );
}
