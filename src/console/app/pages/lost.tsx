import { Link } from '@tanstack/react-router';

export function LostPage() {
  return (
    <main className="alone">
      <h1>Page not found</h1>
      <Link to="/" className="button">
        Back to the start
      </Link>
    </main>
  );
}
