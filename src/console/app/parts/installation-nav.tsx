/** The pages below "Installation", above each of them. */
import { Link } from '@tanstack/react-router';
import { installationPages } from '../installation.ts';

export function InstallationNav() {
  return (
    <nav className="tabs" aria-label="Installation">
      {installationPages.map(({ to, name }) => (
        <Link key={to} to={to} activeOptions={{ exact: true }} activeProps={{ 'aria-current': 'page' }}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
