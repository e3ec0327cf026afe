/**
 * From a conflict to a report: the two lines that say most, the layouts they ask for, drawn, and one
 * remedy. A remedy lifts one of the statements in conflict; it is tried out on the whole kernel before it
 * is given, and the layout that the kernel then has is part of it.
 */
import type { AnyOp } from "../../ir/node.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { DiagnosticDetails } from "../../support/diagnostics.ts";
import { formatPosition } from "../../support/location.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { wholeView } from "../algebra/shared-view.ts";
import { drawLayoutText, drawSharedText } from "../drawing/text-drawing.ts";
import type { LayoutContext } from "../rules/context.ts";
import type { LayoutVariable, Statement } from "../rules/statements.ts";
import type { Conflict } from "../solver/minimal-conflict.ts";
import { chosen, solve } from "../solver/solve.ts";
import type { Candidate, Constraint, Origin, Variable } from "../solver/system.ts";
import { buildSystem } from "./build-system.ts";
import type { StatedSystem } from "./build-system.ts";

/** Everything stated about a kernel. */
export interface Statements {
  readonly context: LayoutContext;
  readonly candidates: readonly (readonly Candidate[])[];
  readonly stated: StatedSystem;
}

export function explainConflict(statements: Statements, conflict: Conflict): TilewrightError {
  const [first, second] = conflict.primary;
  const remedy = findRemedy(statements, conflict);
  const side = (origin: Origin): string => describeSide(statements, conflict, origin, remedy);
  const reasons = [...conflict.witnesses.values()].flatMap(({ reason }) => reason ?? []);
  const others = conflict.constraints.filter(({ origin }) => origin !== first && origin !== second);
  const alone = conflict.constraints.length === 1;
  const details: DiagnosticDetails = {
    code: "TW6101",
    message: alone
      ? `no layout will do: ${first.message}, which ${second.message} cannot`
      : `layouts contradict each other: ${second.message}, but ${first.message}`,
    location: second.location,
    expected: side(first),
    found: side(second),
    notes: [
      { message: first.message, location: first.location },
      ...others.map(({ origin }) => ({ message: origin.message, location: origin.location })),
      ...reasons.map((message) => ({ message })),
    ],
    remedy: remedy.text,
  };
  return new TilewrightError(details);
}

interface Remedy {
  readonly text: string;
  /** What the kernel looks like once it is applied. */
  readonly assignment: ReadonlyMap<Variable, Candidate> | undefined;
  readonly solverVariables: readonly Variable[];
}

/** Lifts statements until the kernel can be placed: one where that is enough. */
function findRemedy(statements: Statements, conflict: Conflict): Remedy {
  const options = relaxable(statements.stated, conflict.constraints);
  for (const option of options) {
    const remedy = tryWithout(statements, [option]);
    if (remedy !== undefined) return remedy;
  }
  const lifted: Statement[] = options.slice(0, 1);
  for (;;) {
    const without = buildSystem(statements.context, statements.candidates, {
      without: new Set(lifted),
    });
    const solution = solve(without.system);
    if (solution.status !== "unsatisfiable") break;
    const [next] = relaxable(without, solution.conflict.constraints);
    if (next === undefined) break;
    lifted.push(next);
  }
  const remedy = tryWithout(statements, lifted);
  if (remedy !== undefined) return remedy;
  const text = "use one of the two in another way";
  return { text, assignment: undefined, solverVariables: [] };
}

/** What the user said comes first: it is the easiest to take back. */
function relaxable(stated: StatedSystem, constraints: readonly Constraint[]): Statement[] {
  const found = constraints.flatMap((constraint) => stated.statements.get(constraint) ?? []);
  const options = found.filter(({ reason }) => reason.relax !== undefined);
  const rank = ({ reason }: Statement): number => (reason.pinned === true ? 0 : 1);
  return options.sort((left, right) => rank(left) - rank(right));
}

function tryWithout(statements: Statements, lifted: readonly Statement[]): Remedy | undefined {
  const { context, candidates } = statements;
  const without = buildSystem(context, candidates, { without: new Set(lifted) });
  const solution = solve(without.system);
  if (solution.status !== "solved" || lifted.length === 0) return undefined;
  const { assignment } = solution;
  const texts = lifted.map(({ reason: { op, relax }, ...statement }) => {
    const { position } = op.location;
    const place = position === undefined ? "" : ` (${formatPosition(position)})`;
    const instead = alternative(statement, assignment, without.solverVariables);
    const converts = isPinnedTile(op) ? ", or convert with convertLayout instead" : "";
    return `${relax}${place}${instead}${converts}`;
  });
  return { text: texts.join("; then "), assignment, solverVariables: without.solverVariables };
}

/** Whether a copy of the tile could lie as it was stated. */
function isPinnedTile(op: AnyOp): boolean {
  return op.kind === "layout_cast" && op.attributes.convert !== true;
}

/** What the user could state instead. */
function alternative(
  statement: Omit<Statement, "reason">,
  assignment: ReadonlyMap<Variable, Candidate>,
  solverVariables: readonly Variable[],
): string {
  if (statement.kind !== "pin") return "";
  const { variable } = statement as Statement & { readonly kind: "pin" };
  const solverVariable = solverVariables[variable.index];
  const layout = solverVariable && chosen(assignment, solverVariable);
  return layout === undefined ? "" : `, or write "${layout.text}" there`;
}

/** The layout that a side asks for, or would be content with. */
function describeSide(
  { stated }: Statements,
  { constraints }: Conflict,
  origin: Origin,
  { assignment, solverVariables }: Remedy,
): string {
  const constraint = constraints.find((each) => each.origin === origin);
  const statement = constraint && stated.statements.get(constraint);
  if (statement?.kind === "pin") return draw(statement.variable, statement.layout);
  const variable =
    statement?.kind === "require"
      ? statement.variables[0]
      : statement?.kind === "image"
        ? statement.result
        : undefined;
  const solverVariable = variable && solverVariables[variable.index];
  if (variable === undefined || solverVariable === undefined || assignment === undefined)
    return origin.message;
  return draw(variable, chosen(assignment, solverVariable) as RegisterLayout | SharedLayout);
}

/** The caption and the first rows of a drawing. */
const drawnLines = 8;

function draw(variable: LayoutVariable, layout: RegisterLayout | SharedLayout): string {
  const drawing =
    variable.kind === "register"
      ? drawLayoutText(layout as RegisterLayout, variable.shape)
      : drawSharedText(wholeView(layout as SharedLayout, variable.shape, variable.dtype.bits));
  const lines = drawing.trimEnd().split("\n");
  return lines.length > drawnLines
    ? [...lines.slice(0, drawnLines), "…"].join("\n")
    : lines.join("\n");
}
