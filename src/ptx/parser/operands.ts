/**
 * Operands of instructions.
 *
 *   %r1   %v.x   -%r1   !%p1   _   255   0f3F800000   %tid.x   label   table+8
 *   {%r1, _}   %r1|%p1   [%rd1+16]   [%rd1, {%r1, %r2}]   (results) of a call
 */
import { discard, integer } from "../operands.ts";
import type { AddressOperand, Base, Guard, Operand, Register } from "../module.ts";
import { readConstant, readOffset } from "./constants.ts";
import { undeclared } from "./scope.ts";
import type { Scope } from "./scope.ts";
import type { Scanner } from "./scanner.ts";
import { isSpecialRegister } from "./special-registers.ts";

export class OperandReader {
  readonly #scanner: Scanner;
  /** The innermost block that is being read. */
  scope: Scope;

  constructor(scanner: Scanner, scope: Scope) {
    this.#scanner = scanner;
    this.scope = scope;
  }

  /** `@%p1` or `@!%p1`, the @ already taken. */
  guard(): Guard {
    const negated = this.#scanner.accept("!");
    return { register: this.#register(), negated };
  }

  /** All operands up to the semicolon. In a call, parentheses hold results and arguments. */
  operands(isCall: boolean): readonly Operand[] {
    const scanner = this.#scanner;
    if (scanner.accept(";")) return [];
    const operands: Operand[] = [];
    do {
      operands.push(isCall && scanner.accept("(") ? this.#list() : this.#operand());
    } while (scanner.accept(","));
    if (!scanner.accept(";")) scanner.unexpected('"," or ";"');
    return operands;
  }

  #list(): Operand {
    const elements: Operand[] = [];
    if (this.#scanner.accept(")")) return { kind: "list", elements };
    do elements.push(this.#operand());
    while (this.#scanner.accept(","));
    this.#scanner.take(")");
    return { kind: "list", elements };
  }

  #operand(): Operand {
    const scanner = this.#scanner;
    switch (scanner.peek()) {
      case "[":
        return this.#address();
      case "{":
        return this.#vector();
      case "!":
        return this.#not();
      case "-":
        return this.#negated();
      default: {
        const first = this.#simple();
        const isResult = first.kind !== "integer" && first.kind !== "float";
        if (!isResult || !scanner.accept("|")) return first;
        return { kind: "pair", first, second: this.#simple() };
      }
    }
  }

  #not(): Operand {
    const { text, offset } = this.#scanner;
    if (!/[\s%A-Za-z_$]/.test(text.charAt(offset + 1))) return readConstant(this.#scanner);
    this.#scanner.take("!");
    return { kind: "not", operand: this.#register() };
  }

  #negated(): Operand {
    const { text, offset } = this.#scanner;
    if (text.charAt(offset + 1) !== "%") return readConstant(this.#scanner);
    this.#scanner.take("-");
    return { kind: "negated", operand: this.#simple() };
  }

  #register(): Register {
    const start = this.#scanner.offset;
    const name = this.#scanner.name("a register");
    return this.scope.register(name) ?? undeclared(name, this.#scanner, start);
  }

  #vector(): Operand {
    this.#scanner.take("{");
    return { kind: "vector", elements: this.#elements("}") };
  }

  #elements(end: string): readonly Operand[] {
    const elements: Operand[] = [];
    do elements.push(this.#element());
    while (this.#scanner.accept(","));
    this.#scanner.take(end);
    return elements;
  }

  #element(): Operand {
    return this.#scanner.peek() === "-" ? this.#negated() : this.#simple();
  }

  /** An operand without signs around it. */
  #simple(): Operand {
    const scanner = this.#scanner;
    if (!scanner.atName()) {
      if (!scanner.atDigit() && !/[(~+.]/.test(scanner.peek())) scanner.unexpected("an operand");
      return readConstant(scanner);
    }
    const start = scanner.offset;
    const name = scanner.name();
    if (name === "_") return discard;
    const register = this.scope.register(name);
    if (register === undefined) return this.#named(name, start);
    if (!scanner.acceptJoinedDot()) return register;
    return { kind: "element", register, element: scanner.part("an element, such as x") };
  }

  /** A special register, WARP_SZ, or the name of something in memory or of a place in the code. */
  #named(name: string, start: number): Operand {
    const scanner = this.#scanner;
    if (name === "WARP_SZ") return integer(32);
    if (name.startsWith("%")) {
      const full = scanner.acceptJoinedDot() ? `${name}.${scanner.part("x, y, z or w")}` : name;
      if (!isSpecialRegister(full)) undeclared(full, scanner, start);
      return { kind: "symbol", name: full, offset: 0 };
    }
    this.scope.use(name, start);
    return { kind: "symbol", name, offset: readOffset(scanner) };
  }

  #address(): AddressOperand {
    const scanner = this.#scanner;
    scanner.take("[");
    const { base, offset } = this.#base();
    if (!scanner.accept(",")) {
      scanner.take("]");
      return { kind: "address", base, offset };
    }
    if (!scanner.accept("{")) scanner.unexpected('"{" and coordinates');
    const coordinates = this.#elements("}");
    scanner.take("]");
    return { kind: "address", base, offset, coordinates };
  }

  #base(): { readonly base: Base; readonly offset: number } {
    const scanner = this.#scanner;
    const start = scanner.offset;
    if (!scanner.atName()) {
      const constant = readConstant(scanner);
      if (constant.kind === "integer") return { base: constant, offset: 0 };
      scanner.fail("TW7102", "an address is missing", start, "an integer");
    }
    const name = scanner.name();
    const register = this.scope.register(name);
    if (register !== undefined) return { base: register, offset: readOffset(scanner) };
    if (name.startsWith("%")) undeclared(name, scanner, start);
    this.scope.use(name, start);
    return { base: { kind: "symbol", name, offset: 0 }, offset: readOffset(scanner) };
  }
}
