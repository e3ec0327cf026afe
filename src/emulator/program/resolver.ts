/** Names in a function's body: special registers, variables and functions, as text and as values. */
import type { Instruction, PtxModule, Register } from "../../ptx/module.ts";
import { sharedBase, wordSize } from "../addresses.ts";
import { ownBase } from "../thread-instructions/memory.ts";
import type { LaneWriter, OperandResolver, Pair } from "../thread-instructions/writer.ts";
import type { WarpState } from "../machine/warp.ts";
import { locationOf, unknownName } from "./errors.ts";
import type { Scope } from "./flatten.ts";
import type { OperandContext } from "./operands.ts";
import { gridWorkspace, reservedOffsets, reservedShared } from "./implicit-memory.ts";
import type { FrameLayout, RegisterPlace } from "./registers.ts";
import { clockSpecials, laneSpecials, uniformSpecials, wideSpecials } from "./symbols.ts";
import type { VariablePlace } from "./symbols.ts";
import type { VariableMap } from "./variables.ts";

/** The high word of addresses of functions. */
const functionWindow = 5;

export interface ResolverSources {
  readonly module: PtxModule;
  readonly variables: VariableMap;
  readonly layout: FrameLayout;
  readonly functionNumbers: ReadonlyMap<string, number>;
}

export class Resolver implements OperandResolver, OperandContext {
  readonly #sources: ResolverSources;
  readonly #moduleVariables: ReadonlyMap<string, VariablePlace>;
  #scope: Scope | undefined;
  #instruction: Instruction | undefined;

  constructor(sources: ResolverSources) {
    this.#sources = sources;
    const found = new Map<string, VariablePlace>();
    for (const declaration of sources.module.declarations) {
      if (declaration.kind !== "variable") continue;
      const place = sources.variables.places.get(declaration);
      if (place !== undefined) found.set(declaration.name, place);
    }
    this.#moduleVariables = found;
  }

  /** Names from here on are those of an instruction. */
  at(instruction: Instruction, scope: Scope): void {
    this.#instruction = instruction;
    this.#scope = scope;
  }

  place(register: Register): RegisterPlace {
    const place = this.#sources.layout.places.get(register);
    if (place === undefined) throw new Error(`register ${register.name} has no place`);
    return place;
  }

  variable(name: string): VariablePlace | undefined {
    const own = this.#scope?.variable(name);
    return own === undefined
      ? this.#moduleVariables.get(name)
      : this.#sources.variables.places.get(own);
  }

  #unknown(name: string): never {
    const { module } = this.#sources;
    throw unknownName(name, locationOf(module, this.#instruction));
  }

  symbolWord(name: string, offset: number, writer: LaneWriter): string {
    const special = this.#specialText(name, writer);
    return special ?? this.symbolPair(name, offset, writer).low;
  }

  #specialText(name: string, writer: LaneWriter): string | undefined {
    // Names of others might be those that objects have of themselves.
    if (!name.startsWith("%")) return undefined;
    const word = clockSpecials[name];
    if (word !== undefined) return clockText(word, writer);
    const own = laneSpecials[name] ?? this.#implicitText(name, writer);
    if (own !== undefined) return own;
    const uniform = uniformSpecials.indexOf(name as (typeof uniformSpecials)[number]);
    if (uniform < 0) return undefined;
    writer.beforeOnce(`const z${uniform} = w.specials[${uniform}];`);
    return `z${uniform}`;
  }

  /** Special registers that tell where undeclared memory lies. */
  #implicitText(name: string, writer: LaneWriter): string | undefined {
    if (name.startsWith("%envreg")) {
      const slot = this.#implicitPlace(gridWorkspace)?.offset;
      if (slot === undefined || !/[12]$/.test(name)) return "0";
      writer.beforeOnce(`const y${slot} = w.symbols[${slot}];`);
      return name === "%envreg1" ? `(Math.floor(y${slot} / ${wordSize}) | 0)` : `(y${slot} | 0)`;
    }
    const within = reservedOffsets[name];
    if (within === undefined) return undefined;
    writer.beforeOnce(ownBase);
    return `(OB + ${(this.#implicitPlace(reservedShared)?.offset ?? 0) + within})`;
  }

  #implicitPlace(name: string): VariablePlace | undefined {
    const { implicit, places } = this.#sources.variables;
    const variable = implicit.find((each) => each.name === name);
    return variable === undefined ? undefined : places.get(variable);
  }

  symbolPair(name: string, offset: number, writer: LaneWriter): Pair {
    if (wideSpecials.has(name)) return { low: clockText(0, writer), high: clockText(1, writer) };
    const special = this.#specialText(name, writer);
    if (special !== undefined) return { low: special, high: "0" };
    const place = this.variable(name);
    if (place === undefined) {
      const number = this.#sources.functionNumbers.get(name) ?? this.#unknown(name);
      return { low: `${number}`, high: `${functionWindow}` };
    }
    if (place.space === "global") {
      const slot = place.offset;
      writer.beforeOnce(`const y${slot} = w.symbols[${slot}];`);
      const sum = `(y${slot} + ${offset})`;
      return { low: `(${sum} | 0)`, high: `(Math.floor(${sum} / ${wordSize}) | 0)` };
    }
    if (place.space === "local")
      return { low: `((w.localBase + ${place.offset + offset}) | 0)`, high: "0" };
    if (place.space === "shared") {
      writer.beforeOnce(ownBase);
      return { low: `((OB + ${place.offset + offset}) | 0)`, high: "0" };
    }
    return { low: `${place.offset + offset}`, high: "0" };
  }

  symbol(name: string, offset: number): (warp: WarpState, lane: number) => number {
    const uniform = uniformSpecials.indexOf(name as (typeof uniformSpecials)[number]);
    if (uniform >= 0) return (warp) => warp.specials[uniform] as number;
    if (name === "%laneid") return (_warp, lane) => lane;
    if (name === "%tid.x") return (warp, lane) => warp.lanesX[lane] as number;
    const place = this.variable(name);
    if (place === undefined) {
      const number = this.#sources.functionNumbers.get(name) ?? this.#unknown(name);
      return () => functionAddress(number);
    }
    const at = place.offset + offset;
    if (place.space === "global") return (warp) => (warp.symbols[place.offset] as number) + offset;
    if (place.space === "local") return (warp) => warp.localBase + at;
    if (place.space === "shared") return (warp) => (sharedBase(warp.block.rank) + at) >>> 0;
    return () => at;
  }
}

export function functionAddress(number: number): number {
  return functionWindow * wordSize + number;
}

/** A word of the time: instructions until this step, and those before this one in it. */
function clockText(word: 0 | 1, writer: LaneWriter): string {
  return `w.clock(${word}, ${writer.instructionsBefore})`;
}
