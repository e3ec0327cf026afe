/**
 * The instructions of `ldmatrix` and `stmatrix` for a tile that lies in rows of matrices (`access/ldmatrix.ts`): as many
 * words as follow the same steps go together. Lanes give the addresses of rows, eight for each matrix.
 */
import type { MatrixRows } from "../../../layout/access/ldmatrix.ts";
import type { SharedPlaces } from "../../../layout/access/shared-addresses.ts";
import type { EmitContext } from "../context.ts";
import type { SharedValue } from "../values.ts";
import { SharedAddresses } from "./shared-addresses.ts";
import type { MatrixGroup } from "./units.ts";

interface Words {
  readonly words: readonly number[];
  /** What the bits of the matrix's number add. */
  readonly ofMatrix: readonly [number, number];
}

export function matrixGroups(
  context: EmitContext,
  window: SharedValue,
  places: SharedPlaces,
  { ofRow, starts }: MatrixRows,
): readonly MatrixGroup[] {
  const groups: Words[] = [];
  for (let word = 0; word < starts.length; word += groups.at(-1)?.words.length ?? 1)
    groups.push(wordsFrom(starts, word));
  const startOf = ({ words: [first = 0] }: Words): number => starts[first] ?? 0;
  const addresses = new Map<string, SharedAddresses>();
  return groups.map((group) => {
    const key = group.ofMatrix.join();
    const known = addresses.get(key);
    const made =
      known ??
      new SharedAddresses(context, window, {
        ...places,
        ofBits: [...ofRow, ...group.ofMatrix, ...places.ofBits.slice(5)],
        ofRegister: groups.filter(({ ofMatrix }) => ofMatrix.join() === key).map(startOf),
      });
    addresses.set(key, made);
    return { words: group.words, address: made.of(startOf(group) >> 3) };
  });
}

/** As many words from one on as an instruction can take. */
function wordsFrom(starts: readonly number[], word: number): Words {
  const [first = 0, second, third, fourth] = starts.slice(word, word + 4);
  const next = second === undefined ? -1 : second - first;
  const after = third === undefined ? -1 : third - first;
  if (next >= 0 && after >= 0 && fourth === first + next + after)
    return { words: [word, word + 1, word + 2, word + 3], ofMatrix: [next, after] };
  if (next >= 0) return { words: [word, word + 1], ofMatrix: [next, 0] };
  return { words: [word], ofMatrix: [0, 0] };
}
