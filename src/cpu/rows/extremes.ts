/**
 * Where the greatest or least element of a row lies: the first of equal ones, with -0 equal to +0, and the first NaN before all. Eight
 * lanes each keep the best of theirs and its index; in the end the best of the eight is taken, of equal ones that of the least index.
 */
import { i32, lane, load, op, read, select, splat, vector } from "../loops/builder.ts";
import type { FunctionBuilder, ModuleBuilder } from "../loops/builder.ts";
import type { Callee, Expression, Local } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";

export interface ArgExtreme {
  readonly key: "f32" | "i32" | "u32";
  readonly fn: "argmax" | "argmin";
}

interface Tests {
  readonly word: "f32" | "i32";
  readonly better: OpcodeName;
  readonly betterOfOne: OpcodeName;
}

function testsOf({ key, fn }: ArgExtreme): Tests {
  const order = fn === "argmax" ? "gt" : "lt";
  if (key === "f32") return { word: "f32", better: `f32x4.${order}`, betterOfOne: `f32.${order}` };
  const sign = key === "i32" ? "s" : "u";
  return {
    word: "i32",
    better: `i32x4.${order}_${sign}`,
    betterOfOne: `i32.${order}_${sign}`,
  };
}

/** Parameters: values, count (at least 1). The result is the index. */
export function defineArgExtreme(module: ModuleBuilder, extreme: ArgExtreme): Callee {
  const names = ["values", "count"];
  return module.define(
    `${extreme.fn}_${extreme.key}`,
    ["i32", "i32"],
    ["i32"],
    (builder, values, count) => {
      if (!values || !count) throw new Error(`a search takes ${names.join(", ")}`);
      builder.return(new Search(builder, testsOf(extreme)).run(values, count));
    },
    { names },
  );
}

class Search {
  readonly #builder: FunctionBuilder;
  readonly #tests: Tests;

  constructor(builder: FunctionBuilder, tests: Tests) {
    this.#builder = builder;
    this.#tests = tests;
  }

  run(values: Expression, count: Expression): Expression {
    const { word } = this.#tests;
    const builder = this.#builder;
    const best = builder.variable(load(`${word}.load`, values), "best");
    const found = builder.variable(i32.of(0), "found");
    const whole = builder.keep(op("i32.and", count, i32.of(-8)));
    builder.if(whole, () => this.#vectors(values, whole, best, found));
    const end = i32.add(values, i32.mul(count, i32.of(4)));
    const index = builder.variable(whole, "index");
    builder.countedLoop(i32.add(values, i32.mul(whole, i32.of(4))), end, 4, (at) => {
      this.#take(builder.keep(load(`${word}.load`, at)), read(index), best, found);
      builder.set(index, i32.add(read(index), i32.of(1)));
    });
    return read(found);
  }

  #isBetter(value: Expression, best: Expression): Expression {
    const { word, better } = this.#tests;
    const beyond = op(better, value, best);
    if (word === "i32") return beyond;
    const isNan = op("f32x4.ne", value, value);
    return op("v128.or", beyond, op("v128.and", isNan, op("f32x4.eq", best, best)));
  }

  #vectors(values: Expression, whole: Expression, best: Local, found: Local): void {
    const { word } = this.#tests;
    const builder = this.#builder;
    const halves = [0, 16].map((offset) => ({
      offset,
      best: builder.variable(load("v128.load", values, offset), "bests"),
      found: builder.variable(splat("i32x4", 0), "founds"),
    }));
    const place = builder.variable(splat("i32x4", 0), "place");
    const end = i32.add(values, i32.mul(whole, i32.of(4)));
    builder.countedLoop(values, end, 32, (at) => {
      for (const half of halves) {
        const value = builder.keep(load("v128.load", at, half.offset));
        const mask = builder.keep(this.#isBetter(value, read(half.best)));
        builder.set(half.best, op("v128.bitselect", value, read(half.best), mask));
        builder.set(half.found, op("v128.bitselect", read(place), read(half.found), mask));
      }
      builder.set(place, op("i32x4.add", read(place), splat("i32x4", 8)));
    });
    for (const half of halves) {
      const own = vector(
        "i32x4",
        [0, 1, 2, 3].map((index) => index + half.offset / 4),
      );
      const places = builder.keep(op("i32x4.add", read(half.found), own));
      for (let index = 0; index < 4; index++) {
        const value = builder.keep(lane(`${word}x4.extract_lane`, index, read(half.best)));
        const at = builder.keep(lane("i32x4.extract_lane", index, places));
        this.#take(value, at, best, found);
      }
    }
  }

  /** A better value, or an equal one at an earlier place. */
  #take(value: Expression, at: Expression, best: Local, found: Local): void {
    const { word, betterOfOne } = this.#tests;
    const builder = this.#builder;
    const isEarlier = op("i32.lt_u", at, read(found));
    const beyond = op(betterOfOne, value, read(best));
    const isEqual = op("i32.and", op(`${word}.eq`, value, read(best)), isEarlier);
    let isTaken = op("i32.or", beyond, isEqual);
    if (word === "f32") {
      const isNan = op("f32.ne", value, value);
      const wasNan = op("f32.ne", read(best), read(best));
      const before = op("i32.lt_u", at, read(found));
      const nanWins = op("i32.or", op("i32.eqz", wasNan), before);
      isTaken = op("i32.or", isTaken, op("i32.and", isNan, nanWins));
    }
    const taken = builder.keep(isTaken);
    builder.set(best, select(taken, value, read(best)));
    builder.set(found, select(taken, at, read(found)));
  }
}
