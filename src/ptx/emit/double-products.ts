/**
 * Products of f64 tiles by tensor cores. A lane holds single elements of fragments of 16 rows, 8 columns and 4 of k:
 *
 *   | of       | a lane holds                                       | registers of a fragment                |
 *   |----------|----------------------------------------------------|----------------------------------------|
 *   | left     | rows g and g + 8 at k = t                          | 2, fragments of a row one by one       |
 *   | right    | column g at k = t                                  | 1, fragments of 4 of k one by one      |
 *   | sums     | columns 2t and 2t + 1 of rows g and g + 8          | 4                                      |
 *
 * Instructions of 8 and 16 along k take what two and four such fragments hold, and sum k after k, as a chain of
 * smaller ones would. sm_80 has the smallest alone, of 8 rows: half a fragment.
 */
import type { Register } from "../module.ts";
import { braces } from "../operands.ts";
import { accumulatorWords } from "./asynchronous/products.ts";
import type { EmitContext } from "./context.ts";
import type { TileValue } from "./values.ts";

/** Fragments of a warp along rows and columns, and elements along k. */
interface Fragments {
  readonly rows: number;
  readonly columns: number;
  readonly k: number;
}

/** Elements of k in a fragment. */
const unit = 4;

/** The words of `initial` plus left times right. */
export function multiplyDoubles(
  context: EmitContext,
  { rows, columns, k }: Fragments,
  left: TileValue,
  right: TileValue,
  initial: TileValue | undefined,
): readonly Register[] {
  const words = accumulatorWords(context, 4 * rows * columns, initial, "b64");
  const units = k / unit;
  const taken = unitsAtOnce(context, units);
  // Columns go by slowly: fragments of the left operand are few, and stay in registers.
  for (let step = 0; step < units; step += taken)
    for (let column = 0; column < columns; column += 1)
      for (let row = 0; row < rows; row += 1) {
        const at = 4 * (row * columns + column);
        const first = 2 * (row * units + step);
        multiply(context, {
          sums: words.slice(at, at + 4),
          left: left.words.slice(first, first + 2 * taken),
          right: Array.from({ length: taken }, (_, each) =>
            wordAt(right, (step + each) * columns + column),
          ),
        });
      }
  return words;
}

/** Whether there are instructions of 16 rows, which are those with more of k. */
function hasWhole({ target }: EmitContext): boolean {
  return target.architecture >= 90;
}

/** How many units of k an instruction takes: the most that divide what there is. */
function unitsAtOnce(context: EmitContext, units: number): number {
  if (!hasWhole(context)) return 1;
  return [4, 2].find((count) => units % count === 0) ?? 1;
}

interface FragmentRegisters {
  readonly sums: readonly Register[];
  readonly left: readonly Register[];
  readonly right: readonly Register[];
}

function multiply(context: EmitContext, { sums, left, right }: FragmentRegisters): void {
  const emit = (shape: string, c: readonly Register[], a: readonly Register[]): void => {
    const opcode = `mma.sync.aligned.${shape}.row.col.f64.f64.f64.f64`;
    context.code.emit(opcode, [braces(c), braces(a), braces(right), braces(c)]);
  };
  if (hasWhole(context)) {
    emit(`m16n8k${unit * right.length}`, sums, left);
    return;
  }
  emit("m8n8k4", sums.slice(0, 2), left.slice(0, 1));
  emit("m8n8k4", sums.slice(2), left.slice(1));
}

function wordAt({ words }: TileValue, index: number): Register {
  const word = words[index];
  if (word === undefined) throw new Error(`a lane has no word ${index} of its fragments`);
  return word;
}
