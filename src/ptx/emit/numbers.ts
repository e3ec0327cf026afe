/**
 * The numbers that a lane knows about itself, computed at the kernel's start, each when first asked for.
 *
 *   %tid.x   0 … 127 | 128 … 255 | …       a program thread is 128 lanes, or as many as its kernel says
 *   thread   0       | 1                   made uniform, so that branches on it are
 *   index    0 … 127 | 0 … 127             the lane's number within its program thread
 *   warp     0 … 3   | 0 … 3
 *   lane     0 … 31 each warp
 */
import { lanesPerWarp } from "../../targets/target.ts";
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { integer, symbol } from "../operands.ts";

type Name =
  | "thread"
  | "index"
  | "warp"
  | "lane"
  | "block"
  | "shared"
  | "elected"
  | "leader"
  | `bit ${number}`;

export class Numbers {
  readonly #code: Code;
  /** Lanes of a program thread, a power of two. */
  readonly #lanes: number;
  readonly #known = new Map<Name, Register>();

  constructor(code: Code, warps: number) {
    this.#code = code;
    this.#lanes = warps * lanesPerWarp;
  }

  /** b32: the program thread's index in the block. */
  get thread(): Register {
    return this.#once("thread", () => {
      const shift = integer(Math.log2(this.#lanes));
      const own = this.#code.make("b32", "shr.u32", this.#tid(), shift);
      return this.#uniform(own);
    });
  }

  /** b32: the lane's number in its program thread. */
  get index(): Register {
    const mask = integer(this.#lanes - 1);
    return this.#once("index", () => this.#code.make("b32", "and.b32", this.#tid(), mask));
  }

  /** b32: the warp's number in its program thread. */
  get warp(): Register {
    return this.#once("warp", () => {
      const own = this.#code.make("b32", "shr.u32", this.index, integer(5));
      return this.#uniform(own);
    });
  }

  /** b32: the lane's number in its warp. */
  get lane(): Register {
    return this.#once("lane", () => this.#code.make("b32", "and.b32", this.#tid(), integer(31)));
  }

  /** b32: the number of the block in the grid, all axes together. */
  get block(): Register {
    return this.#once("block", () => this.#code.make("b32", "mov.u32", symbol("%ctaid.x")));
  }

  /** b32: the shared::cta address at which the block's shared memory begins. */
  get shared(): Register {
    return this.#once("shared", () => this.#code.make("b32", "mov.u32", symbol("shared_memory")));
  }

  /** pred: whether a bit of the lane's number in its program thread is set. */
  bit(position: number): Register {
    return this.#once(`bit ${position}`, () => {
      const masked = this.#code.make("b32", "and.b32", this.index, integer(2 ** position));
      return this.#code.make("pred", "setp.ne.u32", masked, integer(0));
    });
  }

  /** pred: whether this is lane 0 of its program thread. */
  get elected(): Register {
    return this.#once("elected", () =>
      this.#code.make("pred", "setp.eq.u32", this.index, integer(0)),
    );
  }

  /** pred: whether this is lane 0 of its warp. */
  get leader(): Register {
    return this.#once("leader", () =>
      this.#code.make("pred", "setp.eq.u32", this.lane, integer(0)),
    );
  }

  #tid(): Register {
    return this.#code.make("b32", "mov.u32", symbol("%tid.x"));
  }

  #uniform(value: Register): Register {
    return this.#code.make("b32", "shfl.sync.idx.b32", value, integer(0), integer(31), integer(-1));
  }

  #once(name: Name, make: () => Register): Register {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const made = this.#code.inPrologue(make);
    this.#known.set(name, made);
    return made;
  }
}
