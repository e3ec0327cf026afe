/**
 * Keys together with the number of their element along an axis, which decides between equal keys: the
 * carriers of searches and of stable sorts, compared as unsigned numbers.
 *
 *   | key, along at most 65536 | carrier                            |
 *   |--------------------------|------------------------------------|
 *   | 16 bits and fewer        | one b32: key, number below         |
 *   | 32 bits                  | one b64: key, number below         |
 *   | 64 bits                  | b64 and b32                        |
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import type { IntegerOperand, Register } from "../../module.ts";
import { braces, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { Carrier } from "./combining.ts";
import { topMask } from "./left-aligned-keys.ts";
import { splitWide } from "./relayout.ts";

const halfRange = 2 ** 16;

export class RankedKeys {
  readonly #code: Code;
  readonly #form: "narrow" | "joined" | "apart";
  readonly #bits: number;

  /** Keys of the format, numbered from 0 below `count`. */
  constructor({ code }: EmitContext, { bits }: DType, count: number) {
    this.#code = code;
    this.#bits = bits;
    this.#form = bits === 64 ? "apart" : bits <= 16 && count <= halfRange ? "narrow" : "joined";
  }

  /** Registers of a carrier. */
  get width(): number {
    return this.#form === "apart" ? 2 : 1;
  }

  /** Behind all others. */
  get last(): readonly IntegerOperand[] {
    return this.#form === "apart" ? [integer(-1), integer(-1)] : [integer(-1)];
  }

  join(key: Register, number: Register): Carrier {
    if (this.#form === "apart") return [key, number];
    if (this.#form === "narrow") return [this.#code.make("b32", "or.b32", key, number)];
    return [this.#code.make("b64", "mov.b64", braces([number, key]))];
  }

  /** b32: the element's number. */
  number(carrier: Carrier): Register {
    const [first, second] = registersOf(carrier);
    if (this.#form === "apart") return second;
    if (this.#form === "narrow")
      return this.#code.make("b32", "and.b32", first, integer(halfRange - 1));
    return splitWide({ code: this.#code }, first)[0];
  }

  key(carrier: Carrier): Register {
    const [first] = registersOf(carrier);
    if (this.#form === "apart") return first;
    if (this.#form === "narrow")
      return this.#code.make("b32", "and.b32", first, integer(topMask(this.#bits)));
    return splitWide({ code: this.#code }, first)[1];
  }

  /** pred: whether the left one comes first. */
  before(left: Carrier, right: Carrier): Register {
    const code = this.#code;
    const [key, number] = registersOf(left);
    const [otherKey, otherNumber] = registersOf(right);
    const width = key.type === "b64" ? 64 : 32;
    const less = code.make("pred", `setp.lt.u${width}`, key, otherKey);
    if (this.#form !== "apart") return less;
    const equal = code.make("pred", "setp.eq.u64", key, otherKey);
    const earlier = code.make("pred", "setp.lt.u32", number, otherNumber);
    const decided = code.make("pred", "and.pred", equal, earlier);
    return code.make("pred", "or.pred", less, decided);
  }

  /** The one that comes first. */
  first(left: Carrier, right: Carrier): Carrier {
    const code = this.#code;
    if (this.#form === "apart") {
      const before = this.before(left, right);
      return left.map((register, index) => {
        const type = register.type === "b64" ? "b64" : "b32";
        return code.make(type, `selp.${type}`, register, right[index] ?? register, before);
      });
    }
    const [own] = registersOf(left);
    const [other] = registersOf(right);
    const width = own.type === "b64" ? 64 : 32;
    return [code.make(`b${width}`, `min.u${width}`, own, other)];
  }
}

/** The registers of a carrier; a lone one twice. */
function registersOf(carrier: Carrier): readonly [Register, Register] {
  const [first, second = first] = carrier;
  if (first === undefined || second === undefined) throw new Error("a carrier of nothing");
  return [first, second];
}
