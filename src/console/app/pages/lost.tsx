import { Link } from '@tanstack/react-router';

export function LostPage() {
  return (
    <main className="alone">
      <h1>There is no such page</h1>
      <Link to="/" className="button">
        To the start
      </Link>
    </main>
  );
}
