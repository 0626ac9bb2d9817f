import { html } from '../../../../lib/pages/html.ts';
import { layout, problem } from '../../../../lib/pages/layout.ts';

/** Email and password. Which of the two was wrong is never said. */
export function signInPage(page: {
  clientName: string;
  /** Where the form goes, and what it carries of the sign-in that it is for. */
  action: string;
  carried: { name: string; value: string };
  csrf: string;
  email?: string | undefined;
  message?: string | undefined;
}): string {
  const typed = page.email !== undefined && page.email !== '';
  const focus = html` autofocus`;
  return layout(
    'Sign in',
    html`<h1>Sign in</h1>
<p class="soft">to continue to ${page.clientName}</p>
${problem(page.message)}
<form method="post" action="${page.action}">
<input type="hidden" name="csrf" value="${page.csrf}">
<input type="hidden" name="${page.carried.name}" value="${page.carried.value}">
<label for="email">Email</label>
<input id="email" name="email" type="email" value="${page.email ?? ''}" required maxlength="254"
 autocomplete="username" autocapitalize="none" spellcheck="false"${typed ? undefined : focus}>
<label for="password">Password</label>
<input id="password" name="password" type="password" required maxlength="1024"
 autocomplete="current-password"${typed ? focus : undefined}>
<button type="submit">Sign in</button>
</form>
<p class="small soft after"><a href="/password">Change your password</a></p>`,
  );
}
