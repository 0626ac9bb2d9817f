/** One line on a terminal's stderr that shows what is being waited for; nothing anywhere else. */
import { visibleLine } from '../domain/visible-text.ts';

export interface Progress {
  show(text: string): void;
  /** Takes the line away. */
  end(): void;
}

const frames = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const clear = '\r\u001b[K';

/** Whether somebody sees a line that changes. */
export function isWatched(): boolean {
  return process.stderr.isTTY === true && process.env.TERM !== 'dumb';
}

export function startProgress(): Progress {
  if (!isWatched()) return { show: () => {}, end: () => {} };
  let line = '';
  let drawn = 0;
  const draw = () => {
    const frame = frames[drawn++ % frames.length];
    // A line that wraps could not be taken away again.
    const text = [...`${frame} ${line}`].slice(0, (process.stderr.columns ?? 80) - 1).join('');
    process.stderr.write(clear + text);
  };
  const timer = setInterval(draw, 120);
  return {
    show(text) {
      line = visibleLine(text);
      draw();
    },
    end() {
      clearInterval(timer);
      process.stderr.write(clear);
    },
  };
}
