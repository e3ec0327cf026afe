/**
 * Which registers of a tile hold elements, where its layout overhangs the shape. A coordinate is the sum
 * of what the lane and the register contribute, so that the question is a comparison of the lane's part
 * with a constant, and often has the same answer in all lanes:
 *
 *   (L0 L1 L2 L3 L4) on [70]: three registers a lane
 *
 *   | register | coordinate | holds an element |
 *   |----------|------------|------------------|
 *   | 0        | lane       | always           |
 *   | 1        | lane + 32  | always           |
 *   | 2        | lane + 64  | where lane < 6   |
 */
import { threadBits } from "../../../layout/algebra/index-bits.ts";
import { expand, expandFlat } from "../../../layout/algebra/expansion.ts";
import type { Expansion } from "../../../layout/algebra/expansion.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { registerPart, weighed } from "../../../layout/model/axis-distribution.ts";
import type { WeighedDigit } from "../../../layout/model/axis-distribution.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { combineParts } from "./thread-parts.ts";

/** The same in all lanes, or what a predicate says in each. */
export type Truth = Register | boolean;

interface ViewedAxis {
  readonly extent: number;
  readonly stride: number;
  readonly digits: readonly WeighedDigit[];
  /** What each thread bit contributes. */
  readonly threadParts: readonly number[];
  /** The greatest part that a lane has. */
  readonly greatest: number;
}

/** Where the elements of a tile lie. */
export function placesOf(
  context: EmitContext,
  layout: RegisterLayout,
  shape: readonly number[],
): TilePlaces {
  if (layout.kind === "splat") return new TilePlaces(context, { shape: [], axes: [] });
  const own = layout.kind === "flat" ? expandFlat(layout, shape) : expand(layout, shape);
  if (own === undefined) throw new Error(`${layout.text} has no digits of its own`);
  return new TilePlaces(context, own);
}

export class TilePlaces {
  readonly #context: EmitContext;
  readonly #axes: readonly ViewedAxis[];
  readonly #coordinates = new Map<number, Register | undefined>();
  readonly #predicates = new Map<string, Register>();
  #number: { readonly register: Register | undefined } | undefined;

  constructor(context: EmitContext, expansion: Expansion) {
    this.#context = context;
    let stride = expansion.shape.reduce((count, extent) => count * extent, 1);
    this.#axes = expansion.shape.map((extent, axis) => {
      stride /= extent;
      return viewedAxis(extent, stride, weighed(expansion, axis));
    });
  }

  /** Whether the register holds an element, as far as the given axes say. */
  inside(register: number, axes: readonly number[] = [...this.#axes.keys()]): Truth {
    let answer: Truth = true;
    for (const axis of axes) {
      const viewed = this.#axis(axis);
      const room = viewed.extent - registerPart(viewed.digits, register);
      if (room <= 0) return false;
      if (room > viewed.greatest) continue;
      answer = this.#both(answer, this.#below(axis, room));
    }
    return answer;
  }

  /** b32: the lane's part of the coordinate along an axis; undefined for zero. */
  coordinate(axis: number): Register | undefined {
    if (!this.#coordinates.has(axis)) {
      const { code, numbers } = this.#context;
      const { threadParts } = this.#axis(axis);
      this.#coordinates.set(axis, combineParts(code, numbers.index, threadParts));
    }
    return this.#coordinates.get(axis);
  }

  /** The register's part of the coordinate along an axis. */
  registerCoordinate(axis: number, register: number): number {
    return registerPart(this.#axis(axis).digits, register);
  }

  /** Whether the register holds an element whose row-major number is in the range. */
  within(register: number, first: number, last: number): Truth {
    const own = this.registerNumber(register);
    const greatest = this.#axes.reduce((sum, axis) => sum + axis.greatest * axis.stride, own);
    let answer = this.inside(register);
    if (own >= last || greatest < first) return false;
    if (answer !== false && own < first)
      answer = this.#both(answer, this.#compareNumber("ge", first - own));
    if (answer !== false && greatest >= last)
      answer = this.#both(answer, this.#compareNumber("lt", last - own));
    return answer;
  }

  /** b32: the part of the row-major number of its elements that is the lane's; undefined for zero. */
  get number(): Register | undefined {
    if (this.#number === undefined) {
      const { code, numbers } = this.#context;
      const parts = Array.from({ length: threadBits }, (_, bit) =>
        this.#axes.reduce((sum, each) => sum + (each.threadParts[bit] ?? 0) * each.stride, 0),
      );
      this.#number = { register: combineParts(code, numbers.index, parts) };
    }
    return this.#number.register;
  }

  /** The part of the row-major number that is the register's. */
  registerNumber(register: number): number {
    return this.#axes.reduce(
      (sum, { digits, stride }) => sum + registerPart(digits, register) * stride,
      0,
    );
  }

  #axis(axis: number): ViewedAxis {
    const viewed = this.#axes[axis];
    if (viewed === undefined) throw new Error(`a tile without axis ${axis}`);
    return viewed;
  }

  #below(axis: number, room: number): Register {
    return this.#predicate(`${axis} ${room}`, () => {
      const own = this.coordinate(axis);
      if (own === undefined) throw new Error("an axis without lanes depends on them");
      return this.#context.code.make("pred", "setp.lt.u32", own, integer(room));
    });
  }

  #compareNumber(relation: "lt" | "ge", bound: number): Register {
    return this.#predicate(`${relation} ${bound}`, () => {
      const own = this.number;
      if (own === undefined) throw new Error("a number without lanes depends on them");
      return this.#context.code.make("pred", `setp.${relation}.s32`, own, integer(bound));
    });
  }

  #both(left: Truth, right: Register): Register {
    if (typeof left === "boolean") return right;
    return this.#predicate(`${left.name} ${right.name}`, () =>
      this.#context.code.make("pred", "and.pred", left, right),
    );
  }

  #predicate(key: string, make: () => Register): Register {
    const known = this.#predicates.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#predicates.set(key, made);
    return made;
  }
}

function viewedAxis(extent: number, stride: number, digits: readonly WeighedDigit[]): ViewedAxis {
  const threadParts = Array.from(
    { length: threadBits },
    (_, bit) => digits.find(({ thread }) => thread === bit)?.weight ?? 0,
  );
  const greatest = threadParts.reduce((sum, part) => sum + part, 0);
  return { extent, stride, digits, threadParts, greatest };
}
