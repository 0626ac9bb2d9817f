/**
 * The rules for new passwords: long, and not easy to guess. Instead of a list of millions of passwords, the parts that
 * people combine into such passwords count as one unit each: common words, the person's own name, years and other short
 * numbers, keyboard rows, repetitions. So `Passw0rd1234!!!` is three units and refused; four unrelated words are enough.
 */
import { DomainError } from '../error.ts';

const fewest = 12;
const most = 1024;
/** Attackers try passwords of fewer units first, however many characters they have. */
const fewestUnits = 5;

const commonWords = new Set(
  `access account admin administrator alexander amanda andrea andrew android angel anthony apple april arsenal ashley
  august austin autumn baby babygirl banana barcelona baseball basketball batman beautiful blessed blue boston brandon
  butterfly changeme change charles charlie charlotte cheese chelsea chocolate christ christian christopher cluster
  computer cookie cowboys daniel december default demo diamond dolphin dragon elizabeth facebook family february flower
  football forever freedom friday friend friends ginger god golden google guest happy heaven hello hockey hunter iloveyou
  internet iphone jackson james january jasmine jennifer jessica jesus jordan joseph joshua july june justin killer
  killme laptop letmein linux liverpool login london love lovely lover lucky madison maggie magic manager manchester march
  maria master matrix matthew michael michelle microsoft monday money monkey monster mother mustang mysql natalie nathan
  nicholas nicole ninja nothing november nvidia october office oracle orange password passwort passwd patrick peanut
  pepper please pokemon princess purple qwertz rachel rainbow rangers red robert root samantha samsung sarah saturday
  school secret secure security september server sesame shadow silver slurm soccer softball spring starwars summer
  sunday sunflower sunshine superman superuser sweet system taylor temp temporary test testing thomas thunder thursday
  tiger tigger trustno tuesday ubuntu unicorn united user victoria wednesday welcome whatever william windows winter
  yankees yellow andromeda gpu
  pass word this is my the you your for`.split(/\s+/),
);

/** Sequences on keyboards and in the alphabet; also matched backwards. */
const rows = [
  '01234567890',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'yxcvbnm',
  '1q2w3e4r5t6y7u8i9o0p',
  'q1w2e3r4t5y6u7i8o9p0',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
  'zaq12wsxcde34rfvbgt56yhn',
  'qazwsxedcrfvtgbyhnujmikolp',
  '!@#$%^&*()',
].flatMap((row) => [row, [...row].reverse().join('')]);

const leet: Record<string, string> = {
  0: 'o',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
  8: 'b',
  '@': 'a',
  $: 's',
  '€': 'e',
};

/**
 * Throws `invalid_parameter` with the reason if the password is not allowed. `person` is its owner, whose name and
 * address count as single units.
 */
export function checkNewPassword(
  password: string,
  person: { email: string; displayName?: string | undefined },
): void {
  // Normalized as for hashing, so that the keyboard's composition of characters does not matter.
  const characters = [...password.normalize('NFKC')].length;
  if (characters < fewest || password.length > most) {
    throw refused(`A password has between ${fewest} and ${most} characters.`);
  }
  const { email, displayName = '' } = person;
  const own = [bare(email), ...`${email} ${displayName}`.toLowerCase().split(/[^\p{L}\p{N}]+/u)];
  if (
    countUnits(password, new Set([...commonWords, ...own.filter((word) => word.length >= 3)])) < fewestUnits
  ) {
    throw refused(
      'This password is among the first that others would try: common words, your own name, years and rows of keys count little. Take several words that do not belong together.',
    );
  }
}

/** The number of units an attacker has to guess: a known word or keyboard row is one, as is any other character. */
function countUnits(password: string, known: ReadonlySet<string>): number {
  // Longer passwords always have enough units, and the limit bounds the computing time.
  const text = bare(password.slice(0, 100));
  const raw = repeated([...text]);
  const plain = raw.map((character) => leet[character] ?? character);
  const spellings = ['i', 'l'].map((one) =>
    plain.map((character) => (/[1!|]/.test(character) ? one : character)),
  );
  const isOneUnit = (from: number, to: number) => {
    const piece = raw.slice(from, to).join('');
    if (to - from >= 3 && (rows.some((row) => row.includes(piece)) || new Set(piece).size === 1)) return true;
    if (/^\d{2,4}$/.test(piece)) return true;
    return [raw, ...spellings].some((letters) => known.has(letters.slice(from, to).join('')));
  };
  const fewestTo = [0];
  for (let to = 1; to <= raw.length; to++) {
    let count = (fewestTo[to - 1] ?? 0) + 1;
    for (let from = Math.max(0, to - 64); from < to - 1; from++) {
      if (isOneUnit(from, to)) count = Math.min(count, (fewestTo[from] ?? 0) + 1);
    }
    fewestTo.push(count);
  }
  return fewestTo.at(-1) ?? 0;
}

/** The repeated unit of a text that only repeats it, but for one or two characters at its end; else the text itself. */
function repeated(text: string[]): string[] {
  for (let length = 1; length * 2 <= text.length - 2; length++) {
    if (text.slice(0, -2).every((character, at) => character === text[at % length]))
      return text.slice(0, length);
  }
  return text;
}

/** The text in lower case, without separators between words. */
function bare(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s._,;:/+'"-]/gu, '');
}

function refused(message: string): DomainError {
  return new DomainError('invalid_parameter', message);
}
