/**
 * What the names in sight mean. A block sees the names of the blocks around it and may hide them;
 * variables, labels and functions may be named before their declaration, registers not.
 *
 *   .reg .b32 %r<100>;      one entry; the objects come when %r7 is first used, one a register
 *   { .reg .pred p; … }     a scope of its own, with a p of its own
 */
import type { PtxType, Register, VectorWidth } from "../module.ts";
import type { Scanner } from "./scanner.ts";

export interface RegisterType {
  readonly type: PtxType;
  readonly vector?: VectorWidth | undefined;
}

interface Range extends RegisterType {
  readonly count: number;
}

const [digitZero, digitNine] = [48, 57];

export class Scope {
  readonly #around: Scope | undefined;
  /** Registers as such; anything else that has a name as `undefined`. */
  readonly #names = new Map<string, Register | undefined>();
  readonly #ranges = new Map<string, Range>();
  /** Names used and not found yet, with the place of their first use. */
  readonly #uses = new Map<string, number>();

  constructor(around?: Scope) {
    this.#around = around;
  }

  declareRegister(name: string, form: RegisterType, scanner: Scanner, offset: number): void {
    this.#claim(name, scanner, offset);
    this.#names.set(name, makeRegister(name, form));
  }

  /** `%r<4>` is %r0 to %r3. */
  declareRange(prefix: string, range: Range, scanner: Scanner, offset: number): void {
    if (this.#ranges.has(prefix)) declaredTwice(prefix, scanner, offset);
    this.#ranges.set(prefix, range);
  }

  /** A variable, parameter, label or function. */
  declare(name: string, scanner: Scanner, offset: number): void {
    this.#claim(name, scanner, offset);
    this.#names.set(name, undefined);
  }

  /** A name that may be declared many times, such as a function's. */
  know(name: string): void {
    this.#names.set(name, undefined);
  }

  register(name: string): Register | undefined {
    const known = this.#names.get(name) ?? this.#fromRange(name);
    return known !== undefined || this.#names.has(name) ? known : this.#around?.register(name);
  }

  use(name: string, offset: number): void {
    if (!this.#uses.has(name)) this.#uses.set(name, offset);
  }

  /** Hands what is still unknown to the scope around, or reports it where there is none. */
  close(scanner: Scanner): void {
    for (const [name, offset] of this.#uses) {
      if (this.#names.has(name)) continue;
      if (this.#around === undefined) undeclared(name, scanner, offset);
      this.#around.use(name, offset);
    }
  }

  #claim(name: string, scanner: Scanner, offset: number): void {
    if (this.#names.has(name) || this.#fromRange(name) !== undefined)
      declaredTwice(name, scanner, offset);
  }

  #fromRange(name: string): Register | undefined {
    if (this.#ranges.size === 0) return undefined;
    let start = name.length;
    while (start > 0 && isDigit(name.charCodeAt(start - 1))) start--;
    if (start === name.length) return undefined;
    return this.#member(name, start) ?? this.#memberOfLongerPrefix(name, start);
  }

  /** The prefix may itself end in digits: `%r1_<4>`, `r2<8>`. */
  #memberOfLongerPrefix(name: string, start: number): Register | undefined {
    for (let end = start + 1; end < name.length; end++) {
      const found = this.#member(name, end);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #member(name: string, start: number): Register | undefined {
    const range = this.#ranges.get(name.slice(0, start));
    if (range === undefined) return undefined;
    const digits = name.slice(start);
    const number = Number(digits);
    if (number >= range.count || (digits.length > 1 && digits.startsWith("0"))) return undefined;
    const register = makeRegister(name, range);
    this.#names.set(name, register);
    return register;
  }
}

function makeRegister(name: string, { type, vector }: RegisterType): Register {
  return vector === undefined
    ? { kind: "register", name, type }
    : { kind: "register", name, type, vector };
}

function isDigit(code: number): boolean {
  return code >= digitZero && code <= digitNine;
}

function declaredTwice(name: string, scanner: Scanner, offset: number): never {
  scanner.fail("TW7105", `${name} is declared a second time`, offset, "a name of its own", {
    found: name,
  });
}

export function undeclared(name: string, scanner: Scanner, offset: number): never {
  scanner.fail("TW7104", `${name} is not declared`, offset, "a name that is declared", {
    found: name,
  });
}
