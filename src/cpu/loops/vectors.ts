/**
 * How many vectors a loop holds at once. An engine has sixteen registers for them and keeps one; older V8 puts all loads of
 * a body before its arithmetic, so that they count together with what lives across the round:
 *
 *   4×8 product     8 accumulators + 2 + 4 loads = 14, which fits
 *   6×8 product     12 accumulators + 2 + 6 loads = 20, which spills there; newer engines need 12 + 2 + 1
 */
import { opcodes } from "../wasm/opcodes.ts";
import { expressionsOf, innerLists, localsSet, visitExpression, visitStatements } from "./ir.ts";
import type { Label, Local, LoopFunction, Statement } from "./ir.ts";

/** Vectors that a body may hold before engines spill. */
export const vectorRegisters = 15;

export interface LoopPressure {
  readonly label: Label;
  /** Most locals alive at once, and constants, which live throughout. */
  readonly live: number;
  /** Those that live from round to round, constants among them, and all loads of vectors. */
  readonly carriedAndLoads: number;
}

/** Of each loop without loops inside, in the order of the text. */
export function loopPressures({ body }: LoopFunction): readonly LoopPressure[] {
  const pressures: LoopPressure[] = [];
  visitStatements(body, (statement) => {
    if (statement.form !== "loop" || holdsLoop(statement.body)) return;
    const atHead = liveBefore(statement.body, new Map([[statement.label, new Set()]]), new Set());
    const entry = liveBefore(statement.body, new Map([[statement.label, atHead.live]]), new Set());
    const { constants, loads } = counts(statement.body);
    pressures.push({
      label: statement.label,
      live: entry.most + constants,
      carriedAndLoads: entry.live.size + constants + loads,
    });
  });
  return pressures;
}

function holdsLoop(statements: readonly Statement[]): boolean {
  let found = false;
  visitStatements(statements, ({ form }) => (found ||= form === "loop"));
  return found;
}

function counts(body: readonly Statement[]): {
  readonly constants: number;
  readonly loads: number;
} {
  const constants = new Set<string>();
  let loads = 0;
  visitStatements(body, (statement) => {
    for (const root of expressionsOf(statement))
      visitExpression(root, (expression) => {
        if (expression.form === "constant" && expression.type === "v128")
          constants.add(String(expression.value));
        if (
          expression.form === "operation" &&
          expression.type === "v128" &&
          opcodes[expression.op].bytes > 0
        )
          loads += 1;
      });
  });
  return { constants: constants.size, loads };
}

interface Liveness {
  readonly live: ReadonlySet<Local>;
  readonly most: number;
}

/** The vectors that are read before they are set from here on, going backwards, and the most on the way. */
function liveBefore(
  statements: readonly Statement[],
  labels: ReadonlyMap<Label, ReadonlySet<Local>>,
  after: ReadonlySet<Local>,
): Liveness {
  let live = new Set(after);
  let most = live.size;
  for (const statement of statements.toReversed()) {
    if (statement.form === "return" || statement.form === "unreachable") live = new Set();
    if (statement.form === "branch") {
      const target = labels.get(statement.label) ?? new Set<Local>();
      live = new Set(statement.condition === undefined ? target : [...live, ...target]);
    }
    const lists = innerLists(statement);
    if (lists.length > 0) {
      const inside =
        statement.form === "block" ? new Map([...labels, [statement.label, live]]) : labels;
      const inner = lists.map((list) => liveBefore(list, inside, live));
      most = Math.max(most, ...inner.map((one) => one.most));
      const untouched = statement.form === "if" || statement.form === "switch" ? live : [];
      live = new Set([...untouched, ...inner.flatMap((one) => [...one.live])]);
    }
    for (const local of localsSet(statement)) live.delete(local);
    for (const root of expressionsOf(statement))
      visitExpression(root, (expression) => {
        if (expression.form === "local" && expression.type === "v128") live.add(expression.local);
      });
    most = Math.max(most, live.size);
  }
  return { live, most };
}
