import { expect, test } from "vitest";
import { bodyText, testMistakes, trace, wrong } from "../../../test/language.ts";
import type { Mistake } from "../../../test/language.ts";
import { f32 } from "../../formats/dtype.ts";
import { tensor, barrier, block, kernel, loop, pipeline, ring, pingPong, zeros } from "../index.ts";
import type { InputOptions, Scalar } from "../index.ts";
import type { Axes } from "./step-grid.ts";

const mistakes: readonly Mistake[] = [
  {
    name: "block without axes",
    code: "TW1101",
    make: () =>
      trace(({ x }) => {
        pipeline({ grid: { k: 4 }, inputs: { row: ({ k }) => x.at(k, 3) } }, () => undefined); // <- here
      }),
    message: "the block of row is no window that can be copied",
    found: "ref<gmem, f32, []>",
  },
  {
    name: "block of shared memory",
    code: "TW1101",
    make: () =>
      trace(({ shared }) => {
        pipeline({ grid: { k: 4 }, inputs: { row: ({ k }) => shared.at(k) } }, () => undefined); // <- here
      }),
    expected: "a window on global memory",
  },
  {
    name: "block that is no window",
    code: "TW1101",
    make: () =>
      trace(({ row }) => {
        pipeline({ grid: { k: 4 }, inputs: { row: wrong(() => row) } }, () => undefined); // <- here
      }),
    found: "tile<f32, [64]>",
  },
  {
    name: "no room",
    code: "TW1102",
    make: () =>
      trace(({ x }) => {
        const inputs = { row: wrong(() => x.at(0)) }; // <- here
        pipeline({ grid: { k: 4 }, inputs, depth: 0 }, () => undefined);
      }),
    message: "the depth of row cannot be 0",
  },
  {
    name: "delay without room",
    code: "TW1102",
    make: () =>
      trace(({ x }) => {
        const row = { at: ({ k }: { k: Scalar<"i32"> }) => x.at(k), delay: 2 }; // <- here
        pipeline({ grid: { k: 4 }, inputs: { row }, depth: 2 }, () => undefined);
      }),
    message: "the delay of row cannot be 2",
    expected: "a whole number from 0 to 1",
  },
  {
    name: "lookahead beyond the room",
    code: "TW1102",
    make: () =>
      trace(({ x }) => {
        pipeline(
          {
            grid: { k: 4 },
            inputs: { row: { at: ({ k }) => x.at(k), depth: 3, delay: 1, lookahead: 3 } }, // <- here
          },
          () => undefined,
        );
      }),
    expected: "a whole number from 1 to 2",
  },
  {
    name: "stationary block that moves",
    code: "TW1113",
    make: () =>
      trace(({ x }) => {
        const row = { at: ({ k }: { k: Scalar<"i32"> }) => x.at(k), stationary: true }; // <- here
        pipeline({ grid: { k: 4 }, inputs: { row } }, () => undefined);
      }),
    message: "the block of row is stationary, and its window moves with the steps",
    expected: "a window that does not depend on k",
    found: "one that moves in each step",
  },
  {
    name: "stationary output that moves now and then",
    code: "TW1113",
    make: () =>
      trace(({ x }) => {
        const row = { at: ({ k }: { k: Scalar<"i32"> }) => x.at(k.div(2)), stationary: true }; // <- here
        pipeline({ grid: { k: 4 }, outputs: { row } }, () => undefined);
      }),
    found: "one that moves in some steps",
  },
  {
    name: "stationary that is no flag",
    code: "TW1008",
    make: () =>
      trace(({ x }) => {
        const row: InputOptions<Axes> = { at: () => x.at(block(0, 4)), stationary: wrong("yes") }; // <- here
        pipeline({ grid: { k: 4 }, inputs: { row } }, () => undefined);
      }),
    expected: "true or false",
  },
  {
    name: "waiting by hand in one thread",
    code: "TW1102",
    make: () =>
      trace(({ x }) => {
        const inputs = { row: { at: wrong(() => x.at(block(0, 4))), manual: true } }; // <- here
        pipeline({ grid: { k: 4 }, inputs }, () => undefined);
      }),
    message: "the steps cannot wait for row themselves",
  },
  {
    name: "axis and input of one name",
    code: "TW1103",
    make: () =>
      trace(({ x }) => {
        pipeline({ grid: { k: 4 }, inputs: { k: ({ k }) => x.at(k) } }, () => undefined); // <- here
      }),
    message: "k names two things of a pipeline",
  },
  {
    name: "order of other inputs",
    code: "TW1104",
    make: () =>
      trace(({ x }) => {
        const inputs = { row: wrong(() => x.at(0)) };
        pipeline({ grid: { k: 4 }, inputs, prefetch: [wrong("column")] }, () => undefined); // <- here
      }),
    expected: "row",
    found: "column",
  },
  {
    name: "block that threads cannot share",
    code: "TW1105",
    make: () =>
      kernel(
        { name: "uneven", threads: ["a", "b"], inputs: { x: tensor(f32, [8, 7]) } },
        ({ x }) => {
          pipeline({ grid: { k: 8 }, inputs: { row: ({ k }) => x.at(k) } }, () => undefined); // <- here
        },
      ),
    message: "the block of row cannot be divided into 2 equal parts",
    found: "[7]",
  },
  {
    name: "multicast without a cluster",
    code: "TW1107",
    make: () =>
      trace(({ x }) => {
        const row = { at: wrong(() => x.at(0)), multicast: "i" }; // <- here
        pipeline({ grid: { k: 4 }, inputs: { row } }, () => undefined);
      }),
    expected: "this kernel has none",
    found: "i",
  },
  {
    name: "wait that is no yes or no",
    code: "TW1008",
    make: () =>
      trace(() => {
        pipeline({ grid: { k: 4 }, waitReadOnly: wrong(() => 1) }, () => undefined); // <- here
      }),
    message: "waitReadOnly of pipeline must be true or false",
  },
  {
    name: "multicast along a number",
    code: "TW1008",
    make: () =>
      trace(({ x }) => {
        const row = { at: wrong(() => x.at(0)), multicast: wrong(() => 0) }; // <- here
        pipeline({ grid: { k: 4 }, inputs: { row } }, () => undefined);
      }),
    message: "multicast must be an axis of the cluster",
  },
  {
    name: "multicast along one axis twice",
    code: "TW1008",
    make: () =>
      trace(({ x }) => {
        const row = { at: wrong(() => x.at(0)), multicast: ["i", "i"] }; // <- here
        pipeline({ grid: { k: 4 }, inputs: { row } }, () => undefined);
      }),
    message: "multicast must be an axis of the cluster",
  },
  {
    name: "multicast into slots that begin anywhere",
    code: "TW1105",
    make: () =>
      kernel(
        {
          name: "small",
          grid: { i: 2 },
          cluster: { i: 2 },
          inputs: { x: tensor(f32, [8, 4]) },
        },
        ({ x }) => {
          const row = { at: ({ k }: { k: Scalar<"i32"> }) => x.at(k), multicast: "i" }; // <- here
          pipeline({ grid: { k: 8 }, inputs: { row } }, () => undefined);
        },
      ),
    message: "the block of row cannot be multicast: it takes 16 bytes",
    expected: "a multiple of 128 bytes, at which each of the 2 slots begins",
    remedy: "choose a larger block, or leave multicast out",
  },
];

testMistakes("mistakes in pipelines", mistakes);

test("the body of a pipeline hands on what it got", () => {
  expect(() =>
    trace(({ x }) => {
      pipeline(
        { grid: { k: 4 }, inputs: { row: ({ k }) => x.at(k) }, carry: zeros(f32, [64]) },
        ({ row }) => wrong(row.load().sum()),
      );
    }),
  ).toThrow(/TW1012: carry\.carry: tile<f32, \[64\]> became f32/);
});

test("ring positions advance by adding and comparing", () => {
  const kernelOf = (depth: number) =>
    trace(() => {
      const slots = ring(depth);
      loop({ to: 8, carry: slots.start() }, (_, position) => slots.next(position));
    });
  const text = bodyText(kernelOf(3));
  expect(text).not.toMatch(/fn = (rem|div)/);
  expect(text.match(/compare/g)).toHaveLength(1);
  expect(bodyText(kernelOf(1))).not.toMatch(/compare|add/);
});

test("turns wait for their own barrier and arrive on the next one's", () => {
  const definition = kernel(
    { name: "taking", threads: ["a", "b"], scratch: { own: barrier({ count: 2 }) } },
    ({ own, a, b }) => {
      [a, b].forEach((thread, part) => {
        thread(() => {
          const turn = pingPong({ barriers: own, part, count: 2 });
          loop({ to: 3, carry: turn.start() }, (_, state) => {
            turn.wait(state);
            return turn.arrive(state);
          });
        });
      });
    },
  );
  expect(bodyText(definition).match(/barrier_wait|barrier_arrive/g)).toEqual(
    Array.from({ length: 2 }, () => ["barrier_wait", "barrier_arrive"]).flat(),
  );
});
