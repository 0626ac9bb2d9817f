/** The sign of the product. */
export function Mark() {
  return (
    <svg className="mark" viewBox="0 0 32 32" aria-hidden="true">
      <g transform="rotate(-32 16 16)" fill="none" stroke="currentColor">
        <ellipse cx="16" cy="16" rx="14.5" ry="7" strokeWidth="1.6" opacity=".4" />
        <ellipse cx="16" cy="16" rx="9.5" ry="4.4" strokeWidth="1.8" opacity=".75" />
        <ellipse cx="16" cy="16" rx="4.4" ry="2.5" fill="currentColor" />
      </g>
    </svg>
  );
}
