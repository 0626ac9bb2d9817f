import { html } from '../../../../lib/pages/html.ts';
import { layout, problem } from '../../../../lib/pages/layout.ts';

/** Where people change their own password. It asks for the current one even of a person who is signed in. */
export function passwordPage(page: {
  csrf: string;
  email?: string | undefined;
  message?: string | undefined;
}): string {
  const field = (
    name: string,
    label: string,
    autocomplete: string,
  ) => html`<label for="${name}">${label}</label>
<input id="${name}" name="${name}" type="password" required maxlength="1024" autocomplete="${autocomplete}">`;
  return layout(
    'Change your password',
    html`<h1>Change your password</h1>
<p class="soft">The new one has at least twelve characters: a few words that do not belong together will do. Everything that
is signed in with the old one is signed out, terminals too.</p>
${problem(page.message)}
<form method="post" action="/password">
<input type="hidden" name="csrf" value="${page.csrf}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${page.email ?? ''}" required maxlength="254"
 autocomplete="username" autocapitalize="none" spellcheck="false">
${field('current', 'Current password', 'current-password')}
${field('next', 'New password', 'new-password')}
${field('again', 'New password again', 'new-password')}
<button type="submit">Change it</button>
</form>`,
  );
}

export function passwordChangedPage(): string {
  return layout(
    'Your password is changed',
    html`<h1>Your password is changed</h1>
<p class="soft">Everything that was signed in with the old one is signed out. In a terminal, run
<code>andromeda auth login</code> again.</p>`,
  );
}
