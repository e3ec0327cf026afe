/**
 * The step of a relayout plan that goes through shared memory. A lane's address is a sum, or an exclusive
 * or, of parts of its thread index, combined with the constant of each access; constants that touch no
 * bit of the lane's part go into the instruction.
 *
 *   xor, parts up to 0x7f, offset 0x240:   [place + 0x240]
 *   xor, parts up to 0x7f, offset 0x244:   other = place ^ 4;  [other + 0x240]
 */
import type { AnyOp } from "../../../ir/node.ts";
import { laneMask } from "../../../layout/algebra/index-bits.ts";
import type {
  Access,
  AccessPattern,
  Chunk,
  ExchangeStep,
  RelayoutPlan,
} from "../../../layout/relayout/steps.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import type { AddressOperand, Operand, Register } from "../../module.ts";
import { integer, vector } from "../../operands.ts";
import { threadBarrier, warpBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { placesOf } from "./valid-registers.ts";
import type { TilePlaces, Truth } from "./valid-registers.ts";
import { ScratchMemory } from "./scratch.ts";
import { combineParts } from "./thread-parts.ts";

type File = readonly (Register | undefined)[];

export function runExchange(
  context: EmitContext,
  op: AnyOp,
  plan: RelayoutPlan,
  step: ExchangeStep,
  file: File,
): File {
  const scratch = new ScratchMemory(context, op);
  const meet = step.scope === "warp" ? warpBarrier : threadBarrier;
  const stores = new Side(context, scratch, "stores", plan, step);
  const loads = new Side(context, scratch, "loads", plan, step);
  const loaded: (Register | undefined)[] = [];
  const wide = plan.bits === 64;
  step.chunks.forEach((chunk, index) => {
    if (index === 0) scratch.begin();
    else meet(context, "scratch is read");
    for (const access of chunk.stores) stores.store(access, chunk.guard, file, wide);
    meet(context, "scratch is written");
    for (const access of chunk.loads) loads.load(access, chunk.guard, loaded, wide);
  });
  return Array.from(loaded);
}

/** The accesses that store, or those that load. */
class Side {
  readonly #context: EmitContext;
  readonly #scratch: ScratchMemory;
  readonly #kind: "stores" | "loads";
  readonly #pattern: AccessPattern;
  readonly #layout: RegisterLayout;
  readonly #shape: readonly number[];
  /** The lane's part, and it with constants combined. */
  readonly #places = new Map<number, Register>();
  #part: { readonly register: Register | undefined } | undefined;
  #elements: TilePlaces | undefined;
  #awake: { readonly truth: Truth } | undefined;
  readonly #guards = new Map<string, Register>();

  constructor(
    context: EmitContext,
    scratch: ScratchMemory,
    kind: "stores" | "loads",
    plan: RelayoutPlan,
    step: ExchangeStep,
  ) {
    this.#context = context;
    this.#scratch = scratch;
    this.#kind = kind;
    this.#pattern = step[kind];
    this.#layout = kind === "stores" ? plan.source : plan.target;
    this.#shape = plan.shape;
  }

  store(access: Access, guard: Chunk["guard"], file: File, wide: boolean): void {
    const { code } = this.#context;
    const words = access.words.map((word) => file[word]);
    const some = words.find((word) => word !== undefined);
    if (some === undefined) return;
    const operands = words.map((word) => word ?? some);
    this.#when(access, guard, (at) => {
      code.emit(`st.shared${this.#suffix(wide)}`, [at, vector(operands)]);
    });
  }

  load(
    access: Access,
    guard: Chunk["guard"],
    loaded: (Register | undefined)[],
    wide: boolean,
  ): void {
    const { code } = this.#context;
    const truth = this.#active(access, guard);
    if (truth === false) return;
    const type = wide ? "b64" : "b32";
    const registers = access.words.map((word) => {
      const known = loaded[word];
      if (known !== undefined) return known;
      // Lanes that load nothing hold padding there, which is some number all the same.
      const fresh = truth === true ? code.register(type) : code.constant(type, 0);
      loaded[word] = fresh;
      return fresh;
    });
    this.#when(access, guard, (at) => {
      code.emit(`ld.shared${this.#suffix(wide)}`, [vector(registers), at]);
    });
  }

  #suffix(wide: boolean): string {
    const { vectorBytes } = this.#pattern;
    const each = wide ? 8 : Math.min(4, vectorBytes);
    const count = vectorBytes / each;
    return `${count === 1 ? "" : `.v${count}`}.${each < 4 ? "u" : "b"}${8 * each}`;
  }

  /** Has an access made by the lanes that take part. */
  #when(access: Access, guard: Chunk["guard"], make: (at: Operand) => void): void {
    const { code } = this.#context;
    const truth = this.#active(access, guard);
    if (truth === false) return;
    const at = this.#address(access);
    if (truth === true) make(at);
    else
      code.guarded(truth, () => {
        make(at);
      });
  }

  #active({ register }: Access, guard: Chunk["guard"]): Truth {
    const awake = this.#awakeLanes();
    // Where all take part, padding is stored like elements, but by some layouts only: nobody loads it.
    if (guard === undefined && this.#kind === "stores") return awake;
    this.#elements ??= placesOf(this.#context, this.#layout, this.#shape);
    const within =
      guard === undefined
        ? this.#elements.inside(register)
        : this.#elements.within(register, guard.first, guard.last);
    if (typeof within === "boolean") return within ? awake : false;
    if (typeof awake === "boolean") return awake ? within : false;
    const known = this.#guards.get(within.name);
    if (known !== undefined) return known;
    const both = this.#context.code.make("pred", "and.pred", awake, within);
    this.#guards.set(within.name, both);
    return both;
  }

  /** Lanes none of whose idle bits is set. A warp on its own is as good as any other. */
  #awakeLanes(): Truth {
    if (this.#awake !== undefined) return this.#awake.truth;
    const { code, numbers, scope } = this.#context;
    const { idle } = this.#pattern;
    const mask = idle & laneMask(scope.warps);
    let truth: Truth = true;
    if (mask !== 0) {
      const set = code.make("b32", "and.b32", numbers.index, integer(mask));
      truth = code.make("pred", "setp.eq.u32", set, integer(0));
    }
    this.#awake = { truth };
    return truth;
  }

  #address({ offset, base }: Access): AddressOperand {
    const { combine, threadParts } = this.#pattern;
    const touched =
      combine === "add" ? 0 : offset & threadParts.reduce((mask, part) => mask | part, 0);
    return this.#scratch.address(this.#place(touched), offset - touched + base);
  }

  /** The lane's part of the address, with a constant combined by exclusive or. */
  #place(flipped: number): Register {
    const known = this.#places.get(flipped);
    if (known !== undefined) return known;
    const { code, numbers } = this.#context;
    const { combine, threadParts } = this.#pattern;
    this.#part ??= { register: combineParts(code, numbers.index, threadParts, combine) };
    const own = this.#part.register;
    const place =
      own === undefined || flipped === 0 ? own : code.make("b32", "xor.b32", own, integer(flipped));
    const made = this.#scratch.at(place);
    this.#places.set(flipped, made);
    return made;
  }
}
