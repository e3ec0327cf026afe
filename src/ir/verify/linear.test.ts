import { describe, expect, test } from "vitest";
import { here, testMistakes } from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import {
  accumulating,
  accumulator,
  accumulatorType,
  elsewhere,
  multiply,
  only,
  there,
  wait,
} from "../../../test/ir-kernels.ts";
import { i32 } from "../../formats/dtype.ts";
import { verifierCodes } from "../../support/diagnostic-codes/ir/verifier.ts";
import { scalarType } from "../types.ts";

test(
  "accumulators may go through loops, scopes and waits, each consumed once",
  accumulating((writer) => {
    const { add, nested, index } = writer;
    const first = multiply(writer, accumulator(writer));
    const looped = only(
      add(
        "loop",
        { lower: index, upper: index, step: index, initial: [first] },
        {},
        {
          body: nested([scalarType(i32), accumulatorType], (_, carry) => {
            if (carry === undefined) throw new Error("one carry");
            return [multiply(writer, carry)];
          }),
        },
      ),
    );
    const scoped = only(
      add("scoped", {}, {}, { body: nested([], () => [multiply(writer, looped)]) }),
    );
    const repeated = only(
      add(
        "while",
        { initial: [scoped] },
        {},
        {
          condition: nested([accumulatorType], () => [writer.flag]),
          body: nested([accumulatorType], (carry) => {
            if (carry === undefined) throw new Error("one carry");
            return [multiply(writer, carry)];
          }),
        },
      ),
    );
    const pending = only(
      add("wgmma_wait", { accumulator: repeated }, { pending: 1, gives: "accumulator" }),
    );
    wait(writer, pending);
  }),
);

test(
  "branches each consume an accumulator, and give it or another",
  accumulating((writer) => {
    const { add, nested, flag, index } = writer;
    const first = multiply(writer, accumulator(writer));
    const kept = only(
      add(
        "if",
        { condition: flag },
        {},
        {
          then: nested([], () => [multiply(writer, first)]),
          otherwise: nested([], () => [first]),
        },
      ),
    );
    const changed = only(
      add(
        "switch",
        { index },
        {},
        {
          cases: [
            nested([], () => [kept]),
            nested([], () => {
              wait(writer, kept);
              return [accumulator(writer)];
            }),
          ],
        },
      ),
    );
    wait(writer, changed);
  }),
);

const mistakes: readonly Mistake[] = [
  {
    name: "accumulator dropped after its product",
    code: "TW2206",
    make: accumulating((writer) => {
      multiply(writer, accumulator(writer), there);
    }),
    message: "inflight<f32, [64, 8]> is never waited for",
    at: there,
    notes: [["the accumulator is defined here", there]],
  },
  {
    name: "carry dropped by the body",
    code: "TW2206",
    make: accumulating((writer) => {
      const { add, nested, index } = writer;
      const body = nested([scalarType(i32), accumulatorType], () => [accumulator(writer)]);
      const initial = [accumulator(writer)];
      const loop = { lower: index, upper: index, step: index, initial };
      wait(writer, only(add("loop", loop, {}, { body }, there)));
    }),
    message: "inflight<f32, [64, 8]> is never waited for",
    at: there,
  },
  {
    name: "accumulator awaited after it went into a product",
    code: "TW2207",
    make: accumulating((writer) => {
      const first = accumulator(writer);
      wait(writer, multiply(writer, first, there));
      wait(writer, first, elsewhere);
    }),
    message: "Accumulator.wait consumes inflight<f32, [64, 8]> a second time",
    at: elsewhere,
    notes: [
      ["the accumulator is defined here", here],
      ["first consumed by wgmma", there],
    ],
  },
  {
    name: "accumulator carried twice",
    code: "TW2207",
    make: accumulating((writer) => {
      const { add, nested, index } = writer;
      const first = accumulator(writer);
      const types = [scalarType(i32), accumulatorType, accumulatorType];
      const body = nested(types, (_, ...carries) => carries);
      const loop = { lower: index, upper: index, step: index, initial: [first, first] };
      for (const result of add("loop", loop, {}, { body }, there)) wait(writer, result);
    }),
    message: "loop consumes inflight<f32, [64, 8]> a second time",
    at: there,
  },
  {
    name: "accumulator consumed inside and after a scope",
    code: "TW2207",
    make: accumulating((writer) => {
      const first = accumulator(writer);
      const body = writer.nested([], () => [wait(writer, first, there)]);
      writer.add("scoped", {}, {}, { body });
      wait(writer, first, elsewhere);
    }),
    message: "Accumulator.wait consumes inflight<f32, [64, 8]> a second time",
    at: elsewhere,
  },
  {
    name: "accumulator from outside a loop",
    code: "TW2208",
    make: accumulating((writer) => {
      const { add, nested, index } = writer;
      const first = accumulator(writer, there);
      const body = nested([scalarType(i32)], () => {
        wait(writer, first, elsewhere);
        return [];
      });
      add("loop", { lower: index, upper: index, step: index, initial: [] }, {}, { body });
    }),
    message: "Accumulator.wait consumes inflight<f32, [64, 8]> of a region around it",
    at: elsewhere,
    notes: [["the accumulator is defined here", there]],
  },
  {
    name: "accumulator that one branch leaves",
    code: "TW2096",
    make: accumulating((writer) => {
      const { add, nested, flag } = writer;
      const first = accumulator(writer, there);
      const then = nested([], () => []);
      const otherwise = nested([], () => {
        wait(writer, first, elsewhere);
        return [];
      });
      add("if", { condition: flag }, {}, { then, otherwise });
    }),
    message: "one branch of when consumes an accumulator that another leaves",
    found: "Accumulator.wait in one, and nothing in the first branch",
    at: here,
    notes: [
      ["the accumulator is defined here", there],
      ["it is consumed by Accumulator.wait here", elsewhere],
    ],
  },
  {
    name: "accumulator that a case leaves",
    code: "TW2096",
    make: accumulating((writer) => {
      const { add, nested, index } = writer;
      const first = accumulator(writer);
      const waits = () => nested([], () => [wait(writer, first)]);
      const other = nested([], () => [wait(writer, multiply(writer, accumulator(writer)))]);
      add("switch", { index }, {}, { cases: [waits(), waits(), other] });
    }),
    message: "one branch of switchCase consumes an accumulator that another leaves",
    found: "Accumulator.wait in one, and nothing in case 2",
    at: here,
  },
  {
    name: "accumulator made and dropped in a branch",
    code: "TW2206",
    make: accumulating((writer) => {
      const { add, nested, flag } = writer;
      const then = nested([], () => {
        accumulator(writer, there);
        return [];
      });
      add("if", { condition: flag }, {}, { then, otherwise: nested([], () => []) });
    }),
    message: "inflight<f32, [64, 8]> is never waited for",
    at: there,
  },
  {
    name: "accumulator consumed in a branch and behind it",
    code: "TW2207",
    make: accumulating((writer) => {
      const { add, nested, flag } = writer;
      const first = accumulator(writer);
      const waits = () => nested([], () => [wait(writer, first)]);
      add("if", { condition: flag }, {}, { then: waits(), otherwise: waits() }, there);
      wait(writer, first, elsewhere);
    }),
    message: "Accumulator.wait consumes inflight<f32, [64, 8]> a second time",
    at: elsewhere,
    notes: [
      ["the accumulator is defined here", here],
      ["first consumed by when", there],
    ],
  },
  {
    name: "accumulator consumed by the condition of while",
    code: "TW2208",
    make: accumulating((writer) => {
      const { add, nested, flag } = writer;
      const condition = nested([accumulatorType], (carry) => {
        if (carry !== undefined) wait(writer, carry, there);
        return [flag];
      });
      const body = nested([accumulatorType], (...carries) => carries);
      const initial = [accumulator(writer)];
      wait(writer, only(add("while", { initial }, {}, { condition, body })));
    }),
    message: "Accumulator.wait consumes inflight<f32, [64, 8]> of a region around it",
    at: there,
  },
];

describe("in-flight accumulators", () => testMistakes(mistakes));

test("every code of in-flight accumulators has a test", () => {
  const tested = new Set<string>(mistakes.map(({ code }) => code));
  const registered = Object.keys(verifierCodes).filter((code) => /^TW220[678]$/.test(code));
  expect(registered.filter((code) => !tested.has(code))).toEqual([]);
});
