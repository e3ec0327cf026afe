/**
 * Layout propagation: from statements to the candidates of every layout variable. Memory accesses, instructions and pins propose layouts for
 * their own variables, and every proposal propagates along the statements, forwards and backwards through their functions, so that
 * neighbours can agree on it.
 *
 *   load %1 proposes (L… | R0 L…)      exp %2 reads %1          %3 = reduce %2
 *     %1: (W0 W1 | R0 R1 L0 …)     ->  %2: the same          ->  %3: (W0 W1)
 *
 * Classes of proposals propagate one after the other, those of users and instructions before those of memory. A variable has room for a
 * bounded number, which bounds the work of the solver. Variables that end without a useful candidate get one in the end.
 */
import { lanesPerWarp, product } from "../algebra/index-bits.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { fitsShape, replication } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { memoryLayouts, simpleLayouts, fitsWarps } from "../model/register-candidates.ts";
import type { Functions, TileFunction } from "../model/layout-functions.ts";
import type { LayoutContext } from "../rules/context.ts";
import { classes } from "../rules/statements.ts";
import type {
  ProposalClass,
  RegisterVariable,
  LayoutVariable,
  Statement,
} from "../rules/statements.ts";

type AnyLayout = RegisterLayout | SharedLayout;

/** How many candidates a variable has once proposals of a class have travelled. */
const room: { readonly [C in ProposalClass]: number } = {
  pin: 4,
  instruction: 7,
  memory: 12,
  fallback: 16,
};
/** And how many more that backward propagation through reductions and repetitions may add. */
const mostPropagated = 6;
/** Kernels of more variables are at the limits of the solver as it is. */
const mostVariablesForPropagation = 1000;

/** A way for layouts to travel: as they are, or through a function forth or back. */
interface Link {
  readonly to: RegisterVariable;
  readonly through: TileFunction | undefined;
  readonly back: boolean;
}

/** A layout that somebody wants of a variable. */
interface WantedLayout {
  readonly layout: RegisterLayout;
  /** The user does, rather than an instruction. */
  readonly asked: boolean;
}

function carry({ through, back }: Link, layout: RegisterLayout): RegisterLayout | undefined {
  if (through === undefined) return layout;
  return back ? through.source(layout) : through.apply(layout);
}

/** What is offered to a function's argument besides, in which lanes share out what the result lacks. */
function spread({ to, through, back }: Link, layout: RegisterLayout): readonly RegisterLayout[] {
  return back && through !== undefined ? through.spread(layout, to.dtype.bits, to.warps) : [];
}

/** Candidates of every variable, by its index; `propagate` adds those that propagate backwards through reductions and repetitions. */
export function propagateCandidates(
  context: LayoutContext,
  { propagate = true }: { readonly propagate?: boolean } = {},
): readonly (readonly AnyLayout[])[] {
  const propagation = new Propagation(context);
  propagation.run();
  if (propagate && context.variables.length <= mostVariablesForPropagation)
    propagation.propagateBackward();
  return propagation.candidates();
}

class Propagation {
  readonly #context: LayoutContext;
  /** What brings layouts to the one spelling of each variable's shape. */
  readonly #normalizers: readonly ReturnType<Functions["normalizer"]>[];
  readonly #found: Map<string, AnyLayout>[];
  readonly #links: Link[][];
  readonly #queue: { readonly variable: RegisterVariable; readonly layout: RegisterLayout }[] = [];
  /** What users and instructions want of each variable. */
  readonly #wanted: WantedLayout[][];

  constructor(context: LayoutContext) {
    this.#context = context;
    const { functions } = context.surroundings;
    this.#normalizers = context.variables.map(({ shape }) => functions.normalizer(shape));
    this.#found = context.variables.map(() => new Map<string, AnyLayout>());
    this.#links = context.variables.map(() => []);
    this.#wanted = context.variables.map(() => []);
  }

  run(): void {
    for (const statement of this.#context.statements) this.#link(statement);
    for (const proposalClass of classes) {
      for (const { variable, layout, class: own } of this.#context.proposals)
        if (own === proposalClass) this.#propose(variable, layout, proposalClass);
      for (const statement of this.#context.statements)
        this.#proposeNeeds(statement, proposalClass);
      this.#travel(proposalClass);
      if (proposalClass === "pin" || proposalClass === "instruction")
        this.#noteWanted(proposalClass === "pin");
    }
    this.#fillEmpty();
    this.#spreadOut();
    this.#defineFunctions();
    this.#completeImages();
  }

  /**
   * Operands of reductions, and what tiles are repeated to, get layouts in which lanes share out what the wanted layouts of the small
   * tile leave to copies. They come last, and take nobody's room.
   */
  propagateBackward(): void {
    const limits = this.#found.map(({ size }) => size + mostPropagated);
    const offer = (to: RegisterVariable, layouts: readonly RegisterLayout[]): void => {
      for (const layout of layouts) this.#offer(to, layout, limits[to.index] ?? 0);
    };
    for (const variable of this.#context.variables)
      if (variable.kind === "register")
        for (const wanted of this.#wantedIn(variable))
          for (const link of this.#linksOf(variable))
            if (!this.#isMet(link, wanted)) offer(link.to, spread(link, wanted.layout));
    // What is asked of a tile may be cheap to reach from where memory would have it.
    for (const variable of this.#context.variables)
      if (variable.kind === "register" && this.#wantedIn(variable).some(({ asked }) => asked))
        for (const layout of this.#registersOf(variable))
          for (const link of this.#linksOf(variable)) offer(link.to, spread(link, layout));
    // What is taken in on the way joins the end of the list that is being walked.
    for (const { variable, layout } of this.#queue)
      for (const link of this.#linksOf(variable)) {
        const carried = carry(link, layout);
        if (carried !== undefined) offer(link.to, [carried]);
        offer(link.to, spread(link, layout));
      }
    this.#queue.length = 0;
  }

  candidates(): readonly (readonly AnyLayout[])[] {
    return this.#found.map((layouts) => [...layouts.values()]);
  }

  #link(statement: Statement): void {
    if (statement.kind === "image") {
      const { source, function: layoutFunction, result } = statement;
      this.#join(source, layoutFunction, result);
    } else if (statement.kind === "convert" && statement.need.kind === "variable") {
      const { source, need } = statement;
      this.#linksOf(source).push({ to: need.variable, through: undefined, back: false });
      this.#linksOf(need.variable).push({ to: source, through: undefined, back: false });
    } else if (statement.kind === "convert" && statement.need.kind === "image") {
      this.#join(statement.need.variable, statement.need.function, statement.source);
    }
  }

  #join(argument: RegisterVariable, layoutFunction: TileFunction, result: RegisterVariable): void {
    this.#linksOf(argument).push({ to: result, through: layoutFunction, back: false });
    this.#linksOf(result).push({ to: argument, through: layoutFunction, back: true });
  }

  #linksOf(variable: LayoutVariable): Link[] {
    const links = this.#links[variable.index];
    if (links === undefined) throw new Error(`variable ${variable.index} is unknown`);
    return links;
  }

  #wantedIn(variable: RegisterVariable): WantedLayout[] {
    const wanted = this.#wanted[variable.index];
    if (wanted === undefined) throw new Error(`variable ${variable.index} is unknown`);
    return wanted;
  }

  #layoutsOf(variable: LayoutVariable): Map<string, AnyLayout> {
    const layouts = this.#found[variable.index];
    if (layouts === undefined) throw new Error(`variable ${variable.index} is unknown`);
    return layouts;
  }

  #registersOf(variable: RegisterVariable): RegisterLayout[] {
    return [...this.#layoutsOf(variable).values()] as RegisterLayout[];
  }

  /** What variables have once pins or instructions have travelled, somebody wants. */
  #noteWanted(asked: boolean): void {
    for (const variable of this.#context.variables)
      if (variable.kind === "register")
        for (const layout of this.#registersOf(variable).slice(this.#wantedIn(variable).length))
          this.#wantedIn(variable).push({ layout, asked });
  }

  #proposeNeeds(statement: Statement, proposalClass: ProposalClass): void {
    if (statement.kind === "pin") {
      const own: ProposalClass = statement.reason.pinned === true ? "pin" : "instruction";
      if (own === proposalClass) this.#propose(statement.variable, statement.layout, own);
    } else if (statement.kind === "convert" && statement.need.kind === "fixed") {
      if (proposalClass === "instruction")
        this.#propose(statement.source, statement.need.layout, "instruction");
    }
  }

  #propose(variable: LayoutVariable, layout: AnyLayout, proposalClass: ProposalClass): void {
    if (variable.kind === "shared") this.#layoutsOf(variable).set(layout.text, layout);
    else this.#offer(variable, layout as RegisterLayout, room[proposalClass]);
  }

  /** Takes the layout in if the variable can hold it, does not have it, and has room. */
  #offer(variable: RegisterVariable, offered: RegisterLayout, limit: number): void {
    const layouts = this.#layoutsOf(variable);
    if (layouts.size >= limit || !fitsShape(offered, variable.shape)) return;
    if (variable.splat === (offered.kind === "splat" ? "never" : "always")) return;
    if (!fitsWarps(offered, variable.warps)) return;
    const layout = this.#normalizers[variable.index]?.(offered) ?? offered;
    if (layouts.has(layout.text)) return;
    layouts.set(layout.text, layout);
    this.#queue.push({ variable, layout });
  }

  #travel(proposalClass: ProposalClass): void {
    // What is taken in on the way joins the end of the list that is being walked.
    for (const { variable, layout } of this.#queue) {
      for (const link of this.#linksOf(variable)) {
        if (link.back && link.through?.wasteful === true && proposalClass !== "pin") continue;
        const carried = carry(link, layout);
        if (carried !== undefined) this.#offer(link.to, carried, room[proposalClass]);
      }
    }
    this.#queue.length = 0;
  }

  /** Whether the argument was told to lie so that an instruction finds what it wants, without copies. */
  #isMet({ to, through, back }: Link, { layout, asked }: WantedLayout): boolean {
    if (!back || through === undefined) return true;
    if (asked) return false;
    const copies = through.source(layout)?.text;
    return this.#wantedIn(to).some(
      (wanted) =>
        wanted.layout.text !== copies && through.apply(wanted.layout)?.text === layout.text,
    );
  }

  /** Variables that nobody proposed anything for are read and written by nothing that would care. */
  #fillEmpty(): void {
    for (const variable of this.#context.variables) {
      if (variable.kind === "shared" || variable.splat === "always") continue;
      const distributed = this.#registersOf(variable).some(({ kind }) => kind !== "splat");
      if (distributed) continue;
      const { shape, dtype, warps } = variable;
      for (const layout of memoryLayouts({ shape, bits: dtype.bits, warps }, shape.length - 1))
        this.#offer(variable, layout, room.fallback);
      this.#travel("fallback");
    }
  }

  /**
   * A tile that has elements for all lanes gets a candidate without copies where it has none: what is computed of random bits, say, would else be
   * computed once more for each copy, since nothing of the tile's shape need be read or written.
   */
  #spreadOut(): void {
    for (const variable of this.#context.variables) {
      if (variable.kind === "shared" || variable.splat === "always") continue;
      const { shape, dtype, warps } = variable;
      if (product(shape) < warps * lanesPerWarp) continue;
      const isSpread = (layout: RegisterLayout): boolean => replication(layout, warps) === 1;
      if (this.#registersOf(variable).some(isSpread)) continue;
      const layouts = memoryLayouts({ shape, bits: dtype.bits, warps }, shape.length - 1);
      // The widest runs alone: each more makes the solver's tables larger, and gains little.
      for (const layout of layouts.filter(isSpread).slice(0, 1))
        this.#offer(variable, layout, room.fallback);
      this.#travel("fallback");
    }
  }

  /** Each variable gets a candidate on which all functions that are applied to it are defined. */
  #defineFunctions(): void {
    const applied = new Map<RegisterVariable, TileFunction[]>();
    const note = (variable: RegisterVariable, layoutFunction: TileFunction): void => {
      applied.set(variable, [...(applied.get(variable) ?? []), layoutFunction]);
    };
    for (const statement of this.#context.statements) {
      if (statement.kind === "image") note(statement.source, statement.function);
      if (statement.kind === "convert" && statement.need.kind === "image")
        note(statement.need.variable, statement.need.function);
    }
    for (const [variable, functions] of applied) {
      const defined = (layout: RegisterLayout): boolean =>
        layout.kind !== "splat" && functions.every((each) => each.apply(layout) !== undefined);
      if (this.#registersOf(variable).some(defined)) continue;
      const { shape, dtype, warps } = variable;
      for (const layout of simpleLayouts({ shape, bits: dtype.bits, warps }).filter(defined))
        this.#offer(variable, layout, Infinity);
      this.#travel("fallback");
    }
  }

  /** An operand's candidate whose image found no room in the result gets it after all. */
  #completeImages(): void {
    for (const statement of this.#context.statements) {
      if (statement.kind !== "image") continue;
      const { source, function: layoutFunction, result } = statement;
      const images = this.#registersOf(source).flatMap((each) => layoutFunction.apply(each) ?? []);
      const spread = images.filter(({ kind }) => kind !== "splat");
      const results = this.#layoutsOf(result);
      if (spread.some(({ text }) => results.has(text))) continue;
      for (const image of spread.slice(0, 1)) this.#offer(result, image, Infinity);
      this.#queue.length = 0;
    }
  }
}
