/** Operands as warp-level rules see them: registers of the running frame, constants, addresses. */
import type { Operand, Register } from "../../ptx/module.ts";
import type { OperandView, WarpView } from "../collective.ts";
import { OperandError } from "../thread-instructions/writer.ts";
import type { WarpState } from "../machine/warp.ts";
import { wordSize } from "../addresses.ts";
import type { RegisterPlace } from "./registers.ts";

/** How a function's operands are found. */
export interface OperandContext {
  place(register: Register): RegisterPlace;
  /** A variable's address in its space, or a special register; as seen by a lane. */
  symbol(name: string, offset: number): (warp: WarpState, lane: number) => number;
}

function state(warp: WarpView): WarpState {
  return warp as WarpState;
}

/** A view that refuses everything it is not asked to do. */
class BasicView implements OperandView {
  readonly operand: Operand;
  readonly elements: readonly OperandView[] = [];

  constructor(operand: Operand) {
    this.operand = operand;
  }

  #refuse(): never {
    throw new OperandError(`${this.operand.kind} operand does not fit here`);
  }

  word(_warp: WarpView, _lane: number): number {
    return this.#refuse();
  }
  setWord(_warp: WarpView, _lane: number, _bits: number): void {
    this.#refuse();
  }
  wide(_warp: WarpView, _lane: number): bigint {
    return this.#refuse();
  }
  setWide(_warp: WarpView, _lane: number, _bits: bigint): void {
    this.#refuse();
  }
  address(_warp: WarpView, _lane: number): number {
    return this.#refuse();
  }
  start(_warp: WarpView): number {
    return this.#refuse();
  }
  defined(_warp: WarpView): number {
    return this.#refuse();
  }
}

/** A register of a function, at a place of the warp's words: its lanes, and which of them are defined. */
class RegisterView extends BasicView {
  readonly #place: RegisterPlace;

  constructor(operand: Operand, place: RegisterPlace) {
    super(operand);
    this.#place = place;
  }

  override start(warp: WarpView): number {
    return state(warp).base + this.#place.offset;
  }

  override defined(warp: WarpView): number {
    return state(warp).base + this.#place.number;
  }

  protected define(warp: WarpView, lane: number): void {
    const { words } = state(warp);
    const at = this.defined(warp);
    words[at] = (words[at] as number) | (1 << lane);
  }
}

class WordView extends RegisterView {
  readonly #mask: number;

  constructor(operand: Operand, place: RegisterPlace) {
    super(operand, place);
    this.#mask = place.bits === 32 ? -1 : 2 ** place.bits - 1;
  }

  override word(warp: WarpView, lane: number): number {
    return (state(warp).words[this.start(warp) + lane] as number) >>> 0;
  }

  override setWord(warp: WarpView, lane: number, bits: number): void {
    state(warp).words[this.start(warp) + lane] = bits & this.#mask;
    this.define(warp, lane);
  }

  override wide(warp: WarpView, lane: number): bigint {
    return BigInt(this.word(warp, lane));
  }

  override setWide(warp: WarpView, lane: number, bits: bigint): void {
    this.setWord(warp, lane, Number(BigInt.asIntN(32, bits)));
  }

  override address(warp: WarpView, lane: number): number {
    return this.word(warp, lane);
  }
}

class PairView extends RegisterView {
  override word(warp: WarpView, lane: number): number {
    return (state(warp).words[this.start(warp) + 2 * lane] as number) >>> 0;
  }

  override setWord(warp: WarpView, lane: number, bits: number): void {
    this.setWide(warp, lane, BigInt(bits >>> 0));
  }

  override wide(warp: WarpView, lane: number): bigint {
    const { words } = state(warp);
    const at = this.start(warp) + 2 * lane;
    const high = BigInt((words[at + 1] as number) >>> 0);
    return (high << 32n) | BigInt((words[at] as number) >>> 0);
  }

  override setWide(warp: WarpView, lane: number, bits: bigint): void {
    const { words } = state(warp);
    const at = this.start(warp) + 2 * lane;
    words[at] = Number(BigInt.asIntN(32, bits));
    words[at + 1] = Number(BigInt.asIntN(32, bits >> 32n));
    this.define(warp, lane);
  }

  override address(warp: WarpView, lane: number): number {
    const { words } = state(warp);
    const at = this.start(warp) + 2 * lane;
    return ((words[at + 1] as number) >>> 0) * wordSize + ((words[at] as number) >>> 0);
  }
}

/** A 128-bit register: four words a lane, lowest first. */
class QuadView extends RegisterView {
  override wide(warp: WarpView, lane: number): bigint {
    const { words } = state(warp);
    const at = this.start(warp) + 4 * lane;
    let bits = 0n;
    for (let word = 3; word >= 0; word--)
      bits = (bits << 32n) | BigInt((words[at + word] as number) >>> 0);
    return bits;
  }

  override setWide(warp: WarpView, lane: number, bits: bigint): void {
    const { words } = state(warp);
    const at = this.start(warp) + 4 * lane;
    for (let word = 0; word < 4; word++)
      words[at + word] = Number(BigInt.asIntN(32, bits >> BigInt(32 * word)));
    this.define(warp, lane);
  }
}

class PredicateView extends RegisterView {
  readonly #flip: number;

  constructor(operand: Operand, place: RegisterPlace, flip: 0 | 1) {
    super(operand, place);
    this.#flip = flip;
  }

  override word(warp: WarpView, lane: number): number {
    const bits = state(warp).words[this.start(warp)] as number;
    return ((bits >>> lane) & 1) ^ this.#flip;
  }

  override setWord(warp: WarpView, lane: number, bits: number): void {
    const { words } = state(warp);
    const at = this.start(warp);
    const cleared = (words[at] as number) & ~(1 << lane);
    words[at] = cleared | ((bits === 0 ? 0 : 1) << lane);
    this.define(warp, lane);
  }
}

/** Something that is the same for as long as the program runs, or that a lane computes. */
class ComputedView extends BasicView {
  readonly #value: (warp: WarpState, lane: number) => number;

  constructor(operand: Operand, value: (warp: WarpState, lane: number) => number) {
    super(operand);
    this.#value = value;
  }

  override word(warp: WarpView, lane: number): number {
    return this.#value(state(warp), lane) >>> 0;
  }

  override wide(warp: WarpView, lane: number): bigint {
    return BigInt.asUintN(64, BigInt(this.#value(state(warp), lane)));
  }

  override address(warp: WarpView, lane: number): number {
    return this.#value(state(warp), lane);
  }
}

class ConstantView extends BasicView {
  readonly #bits: bigint;

  constructor(operand: Operand, bits: bigint) {
    super(operand);
    this.#bits = BigInt.asUintN(64, bits);
  }

  override word(): number {
    return Number(BigInt.asUintN(32, this.#bits));
  }

  override wide(): bigint {
    return this.#bits;
  }

  override address(): number {
    return Number(this.#bits);
  }
}

class AddressView extends BasicView {
  override readonly elements: readonly OperandView[];
  readonly #base: OperandView;
  readonly #offset: number;
  readonly #isNarrow: boolean;

  constructor(
    operand: Operand,
    base: OperandView,
    offset: number,
    isNarrow: boolean,
    coordinates: readonly OperandView[],
  ) {
    super(operand);
    this.#base = base;
    this.#offset = offset;
    this.#isNarrow = isNarrow;
    this.elements = coordinates;
  }

  override address(warp: WarpView, lane: number): number {
    const sum = this.#base.address(warp, lane) + this.#offset;
    return this.#isNarrow ? sum >>> 0 : sum;
  }

  override defined(warp: WarpView): number {
    return this.#base.defined(warp);
  }
}

class ListView extends BasicView {
  override readonly elements: readonly OperandView[];

  constructor(operand: Operand, elements: readonly OperandView[]) {
    super(operand);
    this.elements = elements;
  }
}

/** `_`: takes every result. */
class DiscardView extends BasicView {
  override setWord(): void {}
  override setWide(): void {}
}

export function viewOf(operand: Operand, context: OperandContext): OperandView {
  switch (operand.kind) {
    case "register":
      return registerView(operand, operand, context, 0);
    case "not":
      return registerView(operand, operand.operand, context, 1);
    case "integer":
      return new ConstantView(operand, BigInt(operand.value));
    case "float":
      return new ConstantView(operand, BigInt(operand.bits));
    case "symbol":
      return new ComputedView(operand, context.symbol(operand.name, operand.offset));
    case "address": {
      const base = viewOf(operand.base, context);
      const narrow =
        operand.base.kind === "register" && context.place(operand.base).shape === "word";
      const coordinates = (operand.coordinates ?? []).map((each) => viewOf(each, context));
      return new AddressView(operand, base, operand.offset, narrow, coordinates);
    }
    case "vector":
    case "list":
      return new ListView(
        operand,
        operand.elements.map((element) => viewOf(element, context)),
      );
    case "pair":
      return new ListView(operand, [
        viewOf(operand.first, context),
        viewOf(operand.second, context),
      ]);
    case "discard":
      return new DiscardView(operand);
    case "negated":
    case "element":
      throw new OperandError(`${operand.kind} operand`);
  }
}

function registerView(
  operand: Operand,
  register: Register,
  context: OperandContext,
  flip: 0 | 1,
): OperandView {
  const place = context.place(register);
  if (place.shape === "predicate") return new PredicateView(operand, place, flip);
  if (flip === 1) throw new OperandError("negation of a register that is no predicate");
  if (place.shape === "pair") return new PairView(operand, place);
  if (place.shape === "quad") return new QuadView(operand, place);
  return new WordView(operand, place);
}
