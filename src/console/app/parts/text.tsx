/** A text that others wrote, as long as it may be: in a direction of its own, and cut, with a way to read the whole. */
import { useState } from 'react';
import { Button } from './controls.tsx';

/** Characters that are shown at first. */
const most = 200;

export function Text({ of }: { of: string }) {
  const [isWhole, setWhole] = useState(false);
  if (of.length <= most) return <bdi className="text">{of}</bdi>;
  // Not between the two halves of a character.
  const cut = of.slice(0, most).replace(/[\ud800-\udbff]$/, '');
  return (
    <span className="text">
      <bdi>{isWhole ? of : cut}</bdi>
      {isWhole ? ' ' : '… '}
      <Button className="link small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {isWhole ? 'Show less' : 'Show all'}
      </Button>
    </span>
  );
}
