/**
 * From statements to a system of constraints. Candidates are gathered first: memory accesses, instructions
 * and pins propose layouts for their own slots, and every proposal travels along the statements, through
 * their functions, so that neighbours can agree on it.
 *
 *   load %1 proposes (L… | R0 L…)      exp %2 reads %1          %3 = reduce %2
 *     %1: (W0 W1 | R0 R1 L0 …)     ->  %2: the same          ->  %3: (W0 W1)
 *
 * Classes of proposals travel one after the other: what users and instructions ask for finds room in
 * every slot before what memory would like. A slot has room for a bounded number, which bounds the work
 * of the solver. Slots that end without a candidate that is of use to them get one in the end.
 */
import { lanesPerWarp, product } from "../algebra/bits.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { fitsShape, replication } from "../algebra/register-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { memoryLayouts, simpleLayouts, fitsWarps } from "../model/candidates.ts";
import type { Functions, TileFunction } from "../model/functions.ts";
import type { LayoutContext } from "../rules/context.ts";
import { classes } from "../rules/statements.ts";
import type { ProposalClass, RegisterSlot, Slot, Statement } from "../rules/statements.ts";

type AnyLayout = RegisterLayout | SharedLayout;

/** How many candidates a slot has once proposals of a class have travelled. */
const room: { readonly [C in ProposalClass]: number } = {
  pin: 4,
  instruction: 7,
  memory: 12,
  fallback: 16,
};
/** And how many more once wishes have come through reductions and repetitions. */
const moreForWishes = 6;
/** Kernels of more slots are at the limits of the solver as it is. */
const mostSlotsForWishes = 1000;

/** A way for layouts to travel: as they are, or through a function forth or back. */
interface Link {
  readonly to: RegisterSlot;
  readonly through: TileFunction | undefined;
  readonly back: boolean;
}

/** A layout that somebody wants of a slot. */
interface Wish {
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

/** Candidates of every slot, by its index; `wishes` says whether those are among them that come through reductions and repetitions. */
export function gatherCandidates(
  context: LayoutContext,
  { wishes = true }: { readonly wishes?: boolean } = {},
): readonly (readonly AnyLayout[])[] {
  const gathering = new Gathering(context);
  gathering.run();
  if (wishes && context.slots.length <= mostSlotsForWishes) gathering.spreadWishes();
  return gathering.candidates();
}

class Gathering {
  readonly #context: LayoutContext;
  /** What brings layouts to the one spelling of each slot's shape. */
  readonly #normalizers: readonly ReturnType<Functions["normalizer"]>[];
  readonly #found: Map<string, AnyLayout>[];
  readonly #links: Link[][];
  readonly #queue: { readonly slot: RegisterSlot; readonly layout: RegisterLayout }[] = [];
  /** What users and instructions want of each slot. */
  readonly #wishes: Wish[][];

  constructor(context: LayoutContext) {
    this.#context = context;
    const { functions } = context.surroundings;
    this.#normalizers = context.slots.map(({ shape }) => functions.normalizer(shape));
    this.#found = context.slots.map(() => new Map<string, AnyLayout>());
    this.#links = context.slots.map(() => []);
    this.#wishes = context.slots.map(() => []);
  }

  run(): void {
    for (const statement of this.#context.statements) this.#link(statement);
    for (const proposalClass of classes) {
      for (const { slot, layout, class: own } of this.#context.proposals)
        if (own === proposalClass) this.#propose(slot, layout, proposalClass);
      for (const statement of this.#context.statements)
        this.#proposeNeeds(statement, proposalClass);
      this.#travel(proposalClass);
      if (proposalClass === "pin" || proposalClass === "instruction")
        this.#noteWishes(proposalClass === "pin");
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
  spreadWishes(): void {
    const limits = this.#found.map(({ size }) => size + moreForWishes);
    const offer = (to: RegisterSlot, layouts: readonly RegisterLayout[]): void => {
      for (const layout of layouts) this.#offer(to, layout, limits[to.index] ?? 0);
    };
    for (const slot of this.#context.slots)
      if (slot.kind === "register")
        for (const wish of this.#wishesOf(slot))
          for (const link of this.#linksOf(slot))
            if (!this.#isMet(link, wish)) offer(link.to, spread(link, wish.layout));
    // What is asked of a tile may be cheap to reach from where memory would have it.
    for (const slot of this.#context.slots)
      if (slot.kind === "register" && this.#wishesOf(slot).some(({ asked }) => asked))
        for (const layout of this.#registersOf(slot))
          for (const link of this.#linksOf(slot)) offer(link.to, spread(link, layout));
    // What is taken in on the way joins the end of the list that is being walked.
    for (const { slot, layout } of this.#queue)
      for (const link of this.#linksOf(slot)) {
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
    } else if (statement.kind === "convert" && statement.need.kind === "slot") {
      const { source, need } = statement;
      this.#linksOf(source).push({ to: need.slot, through: undefined, back: false });
      this.#linksOf(need.slot).push({ to: source, through: undefined, back: false });
    } else if (statement.kind === "convert" && statement.need.kind === "image") {
      this.#join(statement.need.slot, statement.need.function, statement.source);
    }
  }

  #join(argument: RegisterSlot, layoutFunction: TileFunction, result: RegisterSlot): void {
    this.#linksOf(argument).push({ to: result, through: layoutFunction, back: false });
    this.#linksOf(result).push({ to: argument, through: layoutFunction, back: true });
  }

  #linksOf(slot: Slot): Link[] {
    const links = this.#links[slot.index];
    if (links === undefined) throw new Error(`slot ${slot.index} is unknown`);
    return links;
  }

  #wishesOf(slot: RegisterSlot): Wish[] {
    const wishes = this.#wishes[slot.index];
    if (wishes === undefined) throw new Error(`slot ${slot.index} is unknown`);
    return wishes;
  }

  #layoutsOf(slot: Slot): Map<string, AnyLayout> {
    const layouts = this.#found[slot.index];
    if (layouts === undefined) throw new Error(`slot ${slot.index} is unknown`);
    return layouts;
  }

  #registersOf(slot: RegisterSlot): RegisterLayout[] {
    return [...this.#layoutsOf(slot).values()] as RegisterLayout[];
  }

  /** What slots have once pins or instructions have travelled, somebody wants. */
  #noteWishes(asked: boolean): void {
    for (const slot of this.#context.slots)
      if (slot.kind === "register")
        for (const layout of this.#registersOf(slot).slice(this.#wishesOf(slot).length))
          this.#wishesOf(slot).push({ layout, asked });
  }

  #proposeNeeds(statement: Statement, proposalClass: ProposalClass): void {
    if (statement.kind === "pin") {
      const own: ProposalClass = statement.reason.pinned === true ? "pin" : "instruction";
      if (own === proposalClass) this.#propose(statement.slot, statement.layout, own);
    } else if (statement.kind === "convert" && statement.need.kind === "fixed") {
      if (proposalClass === "instruction")
        this.#propose(statement.source, statement.need.layout, "instruction");
    }
  }

  #propose(slot: Slot, layout: AnyLayout, proposalClass: ProposalClass): void {
    if (slot.kind === "shared") this.#layoutsOf(slot).set(layout.text, layout);
    else this.#offer(slot, layout as RegisterLayout, room[proposalClass]);
  }

  /** Takes the layout in if the slot can hold it, does not have it, and has room. */
  #offer(slot: RegisterSlot, offered: RegisterLayout, limit: number): void {
    const layouts = this.#layoutsOf(slot);
    if (layouts.size >= limit || !fitsShape(offered, slot.shape)) return;
    if (slot.splat === (offered.kind === "splat" ? "never" : "always")) return;
    if (!fitsWarps(offered, slot.warps)) return;
    const layout = this.#normalizers[slot.index]?.(offered) ?? offered;
    if (layouts.has(layout.text)) return;
    layouts.set(layout.text, layout);
    this.#queue.push({ slot, layout });
  }

  #travel(proposalClass: ProposalClass): void {
    // What is taken in on the way joins the end of the list that is being walked.
    for (const { slot, layout } of this.#queue) {
      for (const link of this.#linksOf(slot)) {
        if (link.back && link.through?.wasteful === true && proposalClass !== "pin") continue;
        const carried = carry(link, layout);
        if (carried !== undefined) this.#offer(link.to, carried, room[proposalClass]);
      }
    }
    this.#queue.length = 0;
  }

  /** Whether the argument was told to lie so that an instruction finds what it wants, without copies. */
  #isMet({ to, through, back }: Link, { layout, asked }: Wish): boolean {
    if (!back || through === undefined) return true;
    if (asked) return false;
    const copies = through.source(layout)?.text;
    return this.#wishesOf(to).some(
      (wish) => wish.layout.text !== copies && through.apply(wish.layout)?.text === layout.text,
    );
  }

  /** Slots that nobody proposed anything for are read and written by nothing that would care. */
  #fillEmpty(): void {
    for (const slot of this.#context.slots) {
      if (slot.kind === "shared" || slot.splat === "always") continue;
      const distributed = this.#registersOf(slot).some(({ kind }) => kind !== "splat");
      if (distributed) continue;
      const { shape, dtype, warps } = slot;
      for (const layout of memoryLayouts({ shape, bits: dtype.bits, warps }, shape.length - 1))
        this.#offer(slot, layout, room.fallback);
      this.#travel("fallback");
    }
  }

  /**
   * A tile that has elements for all lanes gets a candidate without copies where it has none: what is computed of random bits, say, would else be
   * computed once more for each copy, since nothing of the tile's shape need be read or written.
   */
  #spreadOut(): void {
    for (const slot of this.#context.slots) {
      if (slot.kind === "shared" || slot.splat === "always") continue;
      const { shape, dtype, warps } = slot;
      if (product(shape) < warps * lanesPerWarp) continue;
      const isSpread = (layout: RegisterLayout): boolean => replication(layout, warps) === 1;
      if (this.#registersOf(slot).some(isSpread)) continue;
      const layouts = memoryLayouts({ shape, bits: dtype.bits, warps }, shape.length - 1);
      // The widest runs alone: each more makes the solver's tables larger, and gains little.
      for (const layout of layouts.filter(isSpread).slice(0, 1))
        this.#offer(slot, layout, room.fallback);
      this.#travel("fallback");
    }
  }

  /** Each slot gets a candidate on which all functions that are applied to it are defined. */
  #defineFunctions(): void {
    const applied = new Map<RegisterSlot, TileFunction[]>();
    const note = (slot: RegisterSlot, layoutFunction: TileFunction): void => {
      applied.set(slot, [...(applied.get(slot) ?? []), layoutFunction]);
    };
    for (const statement of this.#context.statements) {
      if (statement.kind === "image") note(statement.source, statement.function);
      if (statement.kind === "convert" && statement.need.kind === "image")
        note(statement.need.slot, statement.need.function);
    }
    for (const [slot, functions] of applied) {
      const defined = (layout: RegisterLayout): boolean =>
        layout.kind !== "splat" && functions.every((each) => each.apply(layout) !== undefined);
      if (this.#registersOf(slot).some(defined)) continue;
      const { shape, dtype, warps } = slot;
      for (const layout of simpleLayouts({ shape, bits: dtype.bits, warps }).filter(defined))
        this.#offer(slot, layout, Infinity);
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
