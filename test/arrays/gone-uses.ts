/**
 * Uses of arrays that are gone, as a table: what the array was, how it went, and what is done with it then. Every use ends in the
 * same report wherever arrays are computed; what was asked for before does not. Runs on whatever is chosen by `useDevice`.
 */
import { deepEqual, equal, match } from "node:assert/strict";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import * as T from "../../src/arrays/index.ts";

type F32 = T.NDArray<"f32">;

const double = T.jit((x: F32) => T.mul(x, 2));
const taking = T.jit((x: F32) => T.add(x, 1), { donate: [0] });
const takingTree = T.jit((given: { readonly x: F32; readonly n: number }) => T.add(given.x, 1), {
  donate: [0],
});

/** What an array of [2, 4] is before it goes. */
const kinds: { readonly [name: string]: () => Promise<F32> } = {
  "of the host": async () => T.array([2, 4]),
  "of a compiled function": async () => double(T.array([1, 2])),
  "of a compiled function, read": async () => {
    const x = double(T.array([1, 2]));
    await x.read();
    return x;
  },
  pending: async () => T.mul(T.array([1, 2]), 2),
  "pending, read": async () => {
    const x = T.mul(T.array([1, 2]), 2);
    await x.read();
    return x;
  },
  "of a scope": async () => T.scope(() => T.mul(T.add(double(T.array([1, 2])), 0), 1)),
};

const ways: { readonly [name: string]: (x: F32) => unknown } = {
  disposed: (x) => {
    x.dispose();
    // Once more changes nothing.
    x.dispose();
  },
  donated: (x) => {
    taking(x);
    x.dispose();
  },
};

/** All of these are refused. */
const uses: { readonly [name: string]: (x: F32) => unknown } = {
  read: (x) => x.read(),
  values: (x) => x.values(),
  add: (x) => T.add(x, 1),
  "add and read": (x) => T.add(T.array([1, 1]), x).values(),
  reshape: (x) => T.reshape(x, [2, 1]),
  sum: (x) => T.sum(x),
  concatenate: (x) => T.concatenate([T.array([1]), x]),
  where: (x) => T.where(T.less(T.array([1, 3]), 2), 1, x),
  "a compiled function": (x) => double(x),
  "a compiled function that ignores it": (x) =>
    T.jit((_: F32, y: F32) => T.neg(y))(x, T.array([1])),
  "a compiled function around it": (x) => T.jit((y: F32) => T.add(x, y))(T.array([1, 1])),
  "a compiled function that returns it": (x) =>
    T.jit((y: F32) => [x, T.neg(y)] as const)(T.array([1])),
  donate: (x) => taking(x),
  "donate in a tree": (x) => takingTree({ x, n: 2 }),
  grad: (x) => T.grad((y: F32) => T.sum(T.mul(y, y)))(x),
  "grad around it": (x) => T.grad((y: F32) => T.sum(T.mul(x, y)))(T.array([1, 1])),
  jvp: (x) => T.jvp((y: F32) => T.sin(y), [T.array([1, 1])], [x]),
  vmap: (x) => T.vmap((y: F32) => T.mul(y, y))(x),
  scan: (x) => T.scan((total: F32, y: F32) => [T.add(total, y), y] as const, T.array(0), x),
  cond: (x) =>
    T.cond(
      T.less(T.array(1), 2),
      () => T.neg(x),
      () => T.array([0, 0]),
    ),
  scope: (x) => T.scope(() => x),
};

/** Begun before the array goes; right afterwards. */
const begun: { readonly [name: string]: (x: F32) => Promise<unknown> } = {
  "a read": (x) => x.values(),
  "a compiled function": (x) => double(T.sub(x, T.array([1, 2]))).values(),
  "a compiled function's result": async (x) => double(T.sub(x, T.array([1, 2]))).values(),
  "an operation that is read": (x) => T.add(x, 0).values(),
};

export interface GoneCheck {
  readonly name: string;
  readonly run: () => Promise<void>;
}

async function codeOf(use: () => unknown): Promise<string> {
  try {
    await use();
    return "no report";
  } catch (error) {
    if (!(error instanceof TilewrightError)) return String(error);
    match(String(error.position?.file), /gone-uses/);
    return error.code;
  }
}

function check(name: string, run: () => Promise<void>): GoneCheck {
  return { name: `gone: ${name}`, run };
}

const afterwards = Object.entries(kinds).flatMap(([kind, make]) =>
  Object.entries(ways).map(([way, go]) =>
    check(`${kind}, ${way}`, async () => {
      const found: { [use: string]: string } = {};
      for (const [name, use] of Object.entries(uses)) {
        const x = await make();
        go(x);
        found[name] = await codeOf(() => use(x));
        // What it is can still be asked, and that it is gone told again.
        equal(String(x), "Array(f32[2])");
        equal(await codeOf(() => x.read()), "TW9314");
      }
      deepEqual(found, Object.fromEntries(Object.keys(uses).map((name) => [name, "TW9314"])));
    }),
  ),
);

const before = Object.entries(kinds).flatMap(([kind, make]) =>
  Object.entries(ways).map(([way, go]) =>
    check(`${kind}, ${way} after something was begun`, async () => {
      for (const [name, begin] of Object.entries(begun)) {
        const x = await make();
        const running = begin(x);
        go(x);
        deepEqual(await running, [2, 4], name);
        equal(await codeOf(() => x.read()), "TW9314", name);
      }
    }),
  ),
);

/** What was recorded from it and not computed: what was pending itself is computed again, all else is refused. */
const pending = Object.entries(kinds).map(([kind, make]) =>
  check(`${kind}, needed by what is pending`, async () => {
    for (const way of ["disposed", "donated"]) {
      const x = await make();
      const y = T.mul(T.add(x, 1), 2);
      const inLoop = T.scan(
        (total: F32, _: F32) => [T.add(total, x), total] as const,
        T.array([0, 0]),
        T.array([0]),
      )[0];
      ways[way]?.(x);
      const isComputedAgain = kind === "pending" && way === "disposed";
      for (const [each, values] of [
        [y, [6, 10]],
        [inLoop, [2, 4]],
      ] as const) {
        if (isComputedAgain) deepEqual(await each.values(), values);
        else equal(await codeOf(() => each.values()), "TW9314", way);
      }
      // Others go on.
      deepEqual(await T.add(T.array([1]), 1).values(), [2]);
    }
  }),
);

const both = T.jit((a: F32, b: F32) => T.add(a, b), { donate: [0, 1] });
const first = T.jit((a: F32, b: F32) => T.add(a, b), { donate: [0] });

const single = [
  ...Object.entries(kinds).map(([kind, make]) =>
    check(`${kind}, donated and used besides`, async () => {
      const x = await make();
      const around = T.jit((a: F32) => T.mul(a, x), { donate: [0] });
      equal(await codeOf(() => both(x, x)), "TW9317");
      equal(await codeOf(() => first(x, x)), "TW9317");
      equal(await codeOf(() => around(x)), "TW9317");
      // A call that was refused has taken nothing.
      deepEqual(await x.values(), [2, 4]);
      deepEqual(await both(x, T.array([1, 1])).values(), [3, 5]);
      equal(await codeOf(() => x.values()), "TW9314");
    }),
  ),
  check("a call that fails while it is recorded has taken nothing", async () => {
    const failing = T.jit((x: F32): F32 => T.add(x, T.array([1, 2, 3])), { donate: [0] });
    const x = double(T.array([1, 2]));
    equal(await codeOf(() => failing(x)), "TW9304");
    deepEqual(await x.values(), [2, 4]);
  }),
  check("temporaries of functions, compiled or not", async () => {
    const f = (x: F32): F32 => {
      const doubled = T.mul(x, 2);
      const result = T.add(doubled, 1);
      doubled.dispose();
      return result;
    };
    const late = (x: F32): F32 => {
      const doubled = T.mul(x, 2);
      doubled.dispose();
      return T.add(doubled, 1);
    };
    for (const each of [f, T.jit(f)]) deepEqual(await each(T.array([1, 2])).values(), [3, 5]);
    deepEqual(await T.grad((x: F32) => T.sum(f(x)))(T.array([1, 2])).values(), [2, 2]);
    for (const each of [late, T.jit(late), T.vmap(late)])
      equal(await codeOf(() => each(T.array([1, 2]))), "TW9314");
  }),
  check("a scope disposes of what it computed and does not return", async () => {
    const inner: F32[] = [];
    const given = double(T.array([1, 2]));
    const y = T.scope(() => {
      inner.push(double(given));
      return { sum: T.add(inner[0] ?? given, 1), kept: double(given) };
    });
    deepEqual(await y.sum.values(), [5, 9]);
    deepEqual(await y.kept.values(), [4, 8]);
    deepEqual(await given.values(), [2, 4]);
    for (const each of inner) equal(await codeOf(() => each.values()), "TW9314");
    const within = T.jit((x: F32) => T.scope(() => T.add(double(x), 1)));
    deepEqual(await within(T.array([1, 2])).values(), [3, 5]);
  }),
  check("the report names the line of the use and that of the disposal", async () => {
    const x = double(T.array([1, 2]));
    x.dispose();
    const error: unknown = await x.read().catch((reason: unknown) => reason);
    match(String(error), /TW9314: an array was used after it was disposed of/);
    match(String(error), /it was disposed of here[^]*gone-uses/);
  }),
];

export const goneChecks: readonly GoneCheck[] = [...afterwards, ...before, ...pending, ...single];
