/**
 * A function's body as one list of instructions. Braces open scopes: a label or variable belongs to the
 * block that declares it, and compilers reuse names from block to block:
 *
 *   { $wait: …; @p bra $wait; }      0  …
 *                                    1  @p bra -> 0
 *   { $wait: …; @q bra $wait; }      2  …
 *                                    3  @q bra -> 2
 */
import type { Instruction, Statement, TargetList, Variable } from "../../ptx/module.ts";

export class Scope {
  readonly parent: Scope | undefined;
  /** The instruction that a label stands before. */
  readonly labels = new Map<string, number>();
  readonly variables = new Map<string, Variable>();
  readonly targets = new Map<string, TargetList>();

  constructor(parent: Scope | undefined) {
    this.parent = parent;
  }

  label(name: string): number | undefined {
    return this.labels.get(name) ?? this.parent?.label(name);
  }

  variable(name: string): Variable | undefined {
    return this.variables.get(name) ?? this.parent?.variable(name);
  }

  targetList(name: string): TargetList | undefined {
    return this.targets.get(name) ?? this.parent?.targetList(name);
  }
}

export interface FlatInstruction {
  readonly instruction: Instruction;
  readonly scope: Scope;
}

export interface FlatBody {
  readonly instructions: readonly FlatInstruction[];
  /** All scopes, the outermost first. */
  readonly scopes: readonly Scope[];
}

export function flatten(body: readonly Statement[], parameters: readonly Variable[]): FlatBody {
  const instructions: FlatInstruction[] = [];
  const outermost = new Scope(undefined);
  const scopes = [outermost];
  for (const parameter of parameters) outermost.variables.set(parameter.name, parameter);
  const visit = (statements: readonly Statement[], scope: Scope): void => {
    for (const statement of statements) {
      if (statement.kind === "instruction") instructions.push({ instruction: statement, scope });
      else if (statement.kind === "label") scope.labels.set(statement.name, instructions.length);
      else if (statement.kind === "variable") scope.variables.set(statement.name, statement);
      else if (statement.kind === "targets") scope.targets.set(statement.name, statement);
      else if (statement.kind === "block") {
        const inner = new Scope(scope);
        scopes.push(inner);
        visit(statement.body, inner);
      }
    }
  };
  visit(body, outermost);
  return { instructions, scopes };
}
