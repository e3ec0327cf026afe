/** Makes a failing text small: lines, then words are left out, the longest stretches first, for as long as it fails. */

function* stretches(pieces: readonly string[]): Generator<string> {
  for (let length = pieces.length >> 1; length >= 1; length >>= 1)
    for (let at = 0; at < pieces.length; at += length)
      yield [...pieces.slice(0, at), ...pieces.slice(at + length)].join("");
}

/** The smallest text found that still fails, within a number of tries. */
export async function shrinkText(
  text: string,
  fails: (text: string) => Promise<boolean>,
  tries = 300,
): Promise<string> {
  let best = text;
  let left = tries;
  for (const piece of [/[^\n]*\n|[^\n]+$/g, /\s*(?:[%@#!^]?[\w$.-]+|[^\w\s])/g])
    for (let progressed = true; progressed && left > 0;) {
      progressed = false;
      for (const smaller of stretches(best.match(piece) ?? [])) {
        left -= 1;
        if (left < 0) break;
        if (!(await fails(smaller))) continue;
        best = smaller;
        progressed = true;
        break;
      }
    }
  return best;
}
