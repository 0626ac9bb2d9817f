/**
 * The pages of the console, in the browser. They read and write only by the operations of the two APIs; the console's
 * server (src/console/server) only signs people in and sends the live stream.
 *
 *     reads.ts     every read, with the topics that invalidate it            api.ts, live.ts
 *     routes.tsx   every page, with its address                              pages/…
 *     menu.ts      names of pages, and the permissions that they need
 *     parts/…      components of pages
 *
 * To add a page: a file in pages, a line in routes.tsx, one in menu.ts, and one in reads.ts for each of its reads.
 */
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './api.ts';
import { keepFocus } from './focus.ts';
import { router } from './routes.tsx';
import './style/tokens.css';
import './style/base.css';
import './style/layout.css';
import './style/parts.css';
import './style/forms.css';
import './style/pages.css';
import './style/operator.css';
import './style/people.css';
import './style/slurm.css';

const root = document.getElementById('app');
if (root) {
  keepFocus(router);
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
