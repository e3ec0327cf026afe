import { describe, test } from "vitest";
import { testMistakes } from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import {
  accumulating,
  accumulator,
  accumulatorType,
  multiply,
  only,
  there,
  wait,
} from "../../../test/ir-kernels.ts";
import type { Writer } from "../../../test/ir-kernels.ts";
import { i32 } from "../../formats/dtype.ts";
import type { Value } from "../node.ts";
import { scalarType } from "../types.ts";

type Located = Parameters<Writer["add"]>[4];

/** A wait that leaves products running and gives the tile. */
function take({ add }: Writer, from: Value, pending: number, location?: Located): void {
  add("wgmma_wait", { accumulator: from }, { pending, gives: "tile" }, {}, location);
}

/** A loop around an accumulator. */
function looped(
  { add, nested, index }: Writer,
  first: Value,
  body: (carry: Value) => Value,
): Value {
  const region = nested([scalarType(i32), accumulatorType], (_, carry) => {
    if (carry === undefined) throw new Error("one carry");
    return [body(carry)];
  });
  const bounds = { lower: index, upper: index, step: index };
  return only(add("loop", { ...bounds, initial: [first] }, {}, { body: region }));
}

test(
  "tiles are taken while younger products run",
  accumulating((writer) => {
    const first = multiply(writer, accumulator(writer));
    const second = multiply(writer, accumulator(writer));
    const third = multiply(writer, second);
    take(writer, first, 2);
    wait(writer, third);
  }),
);

test(
  "an accumulator without a product is over, and so is one that was waited for",
  accumulating((writer) => {
    const idle = accumulator(writer);
    const busy = multiply(writer, accumulator(writer));
    const waited = only(
      writer.add("wgmma_wait", { accumulator: busy }, { pending: 0, gives: "accumulator" }),
    );
    take(writer, idle, 3);
    take(writer, waited, 3);
  }),
);

test(
  "an accumulator that branches give is as old as the youngest of theirs",
  accumulating((writer) => {
    const first = multiply(writer, accumulator(writer));
    const { add, nested, flag } = writer;
    const given = only(
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
    const later = multiply(writer, accumulator(writer));
    take(writer, given, 1);
    wait(writer, later);
  }),
);

test(
  "a carry is as old as the youngest that it may be",
  accumulating((writer) => {
    const outer = multiply(writer, accumulator(writer));
    const carried = looped(writer, outer, (carry) => {
      const other = multiply(writer, accumulator(writer));
      take(writer, other, 0);
      return carry;
    });
    const later = multiply(writer, accumulator(writer));
    take(writer, carried, 1);
    wait(writer, later);
  }),
);

const mistakes: readonly Mistake[] = [
  {
    name: "tile of the youngest product",
    code: "TW2222",
    make: accumulating((writer) => {
      const first = multiply(writer, accumulator(writer));
      const second = multiply(writer, accumulator(writer));
      take(writer, second, 1, there);
      wait(writer, first);
    }),
    message: "the tile may still be written: its own product need not be over",
    expected: "at least 1 products started after the last one of this accumulator",
    found: "0 on some way here",
    at: there,
  },
  {
    name: "tile of a carry that the last round multiplied",
    code: "TW2222",
    make: accumulating((writer) => {
      const first = multiply(writer, accumulator(writer));
      const carried = looped(writer, first, (carry) => multiply(writer, carry));
      take(writer, carried, 1, there);
    }),
    message: "the tile may still be written: its own product need not be over",
    at: there,
  },
  {
    name: "tile of a carry that only a round multiplied",
    code: "TW2222",
    make: accumulating((writer) => {
      const carried = looped(writer, accumulator(writer), (carry) => multiply(writer, carry));
      take(writer, carried, 1, there);
    }),
    message: "the tile may still be written: its own product need not be over",
    found: "0 on some way here",
    at: there,
  },
  {
    name: "tile of a product that an earlier wait has left running",
    code: "TW2222",
    make: accumulating((writer) => {
      const first = multiply(writer, accumulator(writer));
      const second = multiply(writer, accumulator(writer));
      take(writer, first, 1);
      take(writer, second, 1, there);
    }),
    message: "the tile may still be written: its own product need not be over",
    at: there,
  },
  {
    name: "tile of an accumulator that one branch multiplied",
    code: "TW2222",
    make: accumulating((writer) => {
      const { add, nested, flag } = writer;
      const first = multiply(writer, accumulator(writer));
      const later = multiply(writer, accumulator(writer));
      const then = nested([], () => [multiply(writer, first)]);
      const given = only(
        add("if", { condition: flag }, {}, { then, otherwise: nested([], () => [first]) }),
      );
      take(writer, given, 1, there);
      wait(writer, later);
    }),
    message: "the tile may still be written: its own product need not be over",
    found: "0 on some way here",
    at: there,
  },
  {
    name: "tile whose younger products may be left out",
    code: "TW2222",
    make: accumulating((writer) => {
      const first = multiply(writer, accumulator(writer));
      const { add, nested, flag } = writer;
      const then = nested([], () => {
        take(writer, multiply(writer, accumulator(writer)), 0);
        return [];
      });
      add("if", { condition: flag }, {}, { then, otherwise: nested([], () => []) });
      take(writer, first, 1, there);
    }),
    message: "the tile may still be written: its own product need not be over",
    at: there,
  },
];

describe("tiles taken too early", () => testMistakes(mistakes));
