/**
 * How a program thread goes through its code. A kernel of one thread runs straight through: what it waits for is there, or
 * never comes. Of several threads each is a state machine: code between waits is a case, locals that live from case to case lie
 * in memory while another thread runs, and a scheduler runs the threads in turns until all have ended.
 *
 *   case 0   … arrive; state = 1
 *   case 1   if the phase is not complete: leave; …
 */
import type { AnyOp, Kernel } from "../../ir/node.ts";
import { regionList, walkOps } from "../../ir/traverse.ts";
import type { Location } from "../../support/location.ts";
import type { Fault } from "../compiled-kernel.ts";
import { i32, load, op as operation, read } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression, Label, Local, Statement } from "../loops/ir.ts";
import { expressionsOf, localsSet, visitExpression, visitStatements } from "../loops/ir.ts";
import type { ValueType } from "../wasm/opcode.ts";
import type { Scratch, Storage } from "./scratch.ts";

/** What a thread's function gives: it has ended, waits, or waits and has gone on before; faults are above 0. */
export const threadStatus = { ended: 0, waits: -2, moved: -3 } as const;

/** A place that code jumps to. */
export type State = number;

export interface Flow {
  /** Whether the op waits, or an op inside of it, so that it is more than one case. */
  splits(op: AnyOp): boolean;
  /** Goes on once the condition holds. */
  wait(condition: () => Expression, location: Location): void;
  /** Lets others run. */
  yield(): void;
  newState(): State;
  /** Statements from here on belong to the state; those before fall into it. */
  place(state: State): void;
  /** Goes on at a state. */
  jump(state: State): void;
  /** Goes on at one state or the other. */
  choose(condition: Expression, then: State, otherwise: State): void;
}

/** What a flow asks of the code that goes through it. */
export interface FlowCode {
  readonly kernel: Kernel;
  /** Where statements go. */
  b: FunctionBuilder;
  /** Statements before all others of the function. */
  readonly head: FunctionBuilder;
  readonly scratch: Pick<Scratch, "takeFresh">;
  /** Memory that is zero when a block begins. */
  readonly zeroed: Storage[];
  readonly argumentBlock: Local;
  readonly scratchBase: Local;
  readonly parameters: readonly Local[];
  /** Whether some of the threads alone run what is lowered. */
  readonly alone: boolean;
  fault(kind: Fault["kind"], text: string, location: Location): number;
  failIf(b: FunctionBuilder, condition: Expression, fault: number): void;
}

/** One thread alone. */
export class StraightFlow implements Flow {
  readonly #lowering: FlowCode;

  constructor(lowering: FlowCode) {
    this.#lowering = lowering;
  }

  splits(): boolean {
    return false;
  }

  wait(condition: () => Expression, location: Location): void {
    const { b } = this.#lowering;
    const fault = this.#lowering.fault("deadlock", "a wait for what never comes", location);
    this.#lowering.failIf(b, operation("i32.eqz", condition()), fault);
  }

  yield(): void {
    // Nobody else is there.
  }

  newState(): State {
    throw new Error("one thread has no states");
  }

  place(): void {
    this.newState();
  }

  jump(): void {
    this.newState();
  }

  choose(): void {
    this.newState();
  }
}

const waitingKinds: ReadonlySet<AnyOp["kind"]> = new Set<AnyOp["kind"]>([
  "barrier_wait",
  "block_sync",
  "cluster_wait",
  "semaphore_wait",
]);

/** Ops that look at what others may change, around which a loop polls. */
const lookingKinds: ReadonlySet<AnyOp["kind"]> = new Set<AnyOp["kind"]>([
  "atomic_load",
  "atomic",
  "atomic_compare_exchange",
  "barrier_test",
  "semaphore_read",
]);

/** Whether a loop may wait for others by looking again and again. */
export function polls(op: AnyOp): boolean {
  if (op.kind !== "while") return false;
  let found = false;
  for (const region of regionList(op))
    walkOps(region, (inner) => (found ||= lookingKinds.has(inner.kind)));
  return found;
}

/** A thread as a state machine. */
export class StateFlow implements Flow {
  readonly #lowering: FlowCode;
  readonly #cases: (readonly Statement[])[] = [];
  readonly #state: Local;
  readonly #moved: Local;
  readonly #dispatch: Label;
  readonly #suspend: Label;
  #current: State = 0;
  #states = 1;
  readonly #together: boolean;

  constructor(lowering: FlowCode) {
    this.#lowering = lowering;
    const { b } = lowering;
    this.#state = b.local("i32", "state");
    this.#moved = b.local("i32", "moved");
    this.#dispatch = { name: "dispatch" };
    this.#suspend = { name: "suspend" };
    this.#together = lowering.kernel.threads.length > 1;
    lowering.b = b.fork();
  }

  splits(op: AnyOp): boolean {
    if (waitingKinds.has(op.kind) || polls(op)) return true;
    if (op.kind === "scoped" && this.#together && !this.#lowering.alone) return true;
    let found = false;
    for (const region of regionList(op))
      walkOps(region, (inner) => {
        found ||= waitingKinds.has(inner.kind) || polls(inner);
        found ||= inner.kind === "scoped" && this.#together;
      });
    return found;
  }

  newState(): State {
    const state = this.#states;
    this.#states += 1;
    return state;
  }

  #finishCase(): void {
    this.#cases[this.#current] = this.#lowering.b.statements;
    this.#lowering.b = this.#lowering.b.fork();
  }

  place(state: State): void {
    this.jump(state);
    this.#finishCase();
    this.#current = state;
  }

  jump(state: State): void {
    const { b } = this.#lowering;
    b.set(this.#state, i32.of(state));
    b.branch(this.#dispatch);
  }

  choose(condition: Expression, then: State, otherwise: State): void {
    const { b } = this.#lowering;
    b.set(this.#state, {
      form: "select",
      type: "i32",
      condition,
      ifTrue: i32.of(then),
      ifFalse: i32.of(otherwise),
    });
    b.branch(this.#dispatch);
  }

  wait(condition: () => Expression): void {
    this.place(this.newState());
    const { b } = this.#lowering;
    b.branch(this.#suspend, operation("i32.eqz", condition()));
    b.set(this.#moved, i32.of(1));
  }

  yield(): void {
    const { b } = this.#lowering;
    const next = this.newState();
    b.set(this.#moved, i32.of(1));
    b.set(this.#state, i32.of(next));
    b.branch(this.#suspend);
    this.#finishCase();
    this.#current = next;
  }

  /** Puts the function together: its frame in memory is zero when the block begins. */
  finish(): void {
    const { b: last, scratch, head } = this.#lowering;
    last.return(i32.of(threadStatus.ended));
    this.#cases[this.#current] = last.statements;
    const b = last.fork();
    this.#lowering.b = b;
    const fields = new Set<Local>();
    visitStatements(head.statements, (statement) => {
      for (const local of localsSet(statement)) fields.add(local);
    });
    const { argumentBlock, scratchBase } = this.#lowering;
    const known = new Set([...fields, argumentBlock, scratchBase, ...this.#lowering.parameters]);
    const saved = [this.#state, ...livingLocals(this.#cases, known)].filter(
      (local, place, all) => all.indexOf(local) === place && local !== this.#moved,
    );
    const frame = scratch.takeFresh(saved.length * 16);
    this.#lowering.zeroed.push(frame);
    saved.forEach((local, place) =>
      b.set(local, load(loads[local.type], read(scratchBase), frame.offset + 16 * place)),
    );
    b.set(this.#moved, i32.of(0));
    const dispatch: Statement = {
      form: "loop",
      label: this.#dispatch,
      body: [{ form: "switch", index: read(this.#state), cases: this.#cases }],
    };
    b.append([{ form: "block", label: this.#suspend, body: [dispatch] }]);
    saved.forEach((local, place) =>
      b.store(stores[local.type], read(scratchBase), read(local), frame.offset + 16 * place),
    );
    b.return({
      form: "select",
      type: "i32",
      condition: read(this.#moved),
      ifTrue: i32.of(threadStatus.moved),
      ifFalse: i32.of(threadStatus.waits),
    });
  }
}

const loads = {
  i32: "i32.load",
  i64: "i64.load",
  f32: "f32.load",
  f64: "f64.load",
  v128: "v128.load",
} as const satisfies { readonly [Type in ValueType]: string };

const stores = {
  i32: "i32.store",
  i64: "i64.store",
  f32: "f32.store",
  f64: "f64.store",
  v128: "v128.store",
} as const satisfies { readonly [Type in ValueType]: string };

/** Locals that are met in more than one case. */
function livingLocals(
  cases: readonly (readonly Statement[])[],
  known: ReadonlySet<Local>,
): readonly Local[] {
  const met = new Map<Local, number>();
  const living = new Set<Local>();
  cases.forEach((statements, index) => {
    const meet = (local: Local): void => {
      if (known.has(local)) return;
      const before = met.get(local);
      if (before !== undefined && before !== index) living.add(local);
      met.set(local, index);
    };
    visitStatements(statements, (statement) => {
      for (const local of localsSet(statement)) meet(local);
      for (const root of expressionsOf(statement))
        visitExpression(root, (expression) => {
          if (expression.form === "local") meet(expression.local);
        });
    });
  });
  return [...living];
}
