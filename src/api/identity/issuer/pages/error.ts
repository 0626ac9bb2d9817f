import { html } from '../../../../lib/pages/html.ts';
import { layout } from '../../../../lib/pages/layout.ts';

/** Anything that has no page of its own. `description` is plain text, as OAuth's `error_description`. */
export function errorPage(error: string, description: string | undefined): string {
  if (error === 'server_error') {
    return messagePage(
      'Something went wrong',
      'This is our fault, and it is in the log. Try again in a moment.',
    );
  }
  return messagePage(
    'This did not work',
    `The request was refused: ${description ?? error.replaceAll('_', ' ')}.`,
  );
}

export function messagePage(title: string, message: string): string {
  return layout(
    title,
    html`<h1>${title}</h1>
<p class="soft">${message}</p>
<p class="small soft">To sign in a terminal, run <code>andromeda auth login</code> and open the link that it shows.</p>`,
  );
}
