/** Access that is promised to be in bounds: no tests in code for a GPU, and broken promises are found by simulator and emulator. */
import { expect, test } from "vitest";
import {
  all,
  barrier,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  f32,
  fromNumbers,
} from "tilewright";
import { i32, iota, kernel, open, slice, smem, tensor, TilewrightError } from "tilewright";
import { toNumbers, waitGroup } from "tilewright";
import type { Barrier, KernelDefinition, Ref, Scalar } from "tilewright";
import { lower } from "../../../lower/stages.ts";
import { defaultTarget } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const [n, m] = [dim("n"), dim("m")];
const [height, width] = [16, 32];

interface Things {
  readonly x: Ref<"f32">;
  readonly y: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly buffer: Ref<"f32">;
  readonly landed: Barrier;
  readonly row: Scalar<"i32">;
  readonly column: Scalar<"i32">;
  readonly promise: { readonly inBounds?: boolean };
}

interface Access {
  readonly body: (things: Things) => void;
  /** Whether columns may overhang, or rows, since a mask or an index leaves them out. */
  readonly loose?: "columns" | "rows";
}

const windowOf = (array: Ref<"f32">, { row, column }: Things): Ref<"f32"> =>
  array.at(slice(row, height), slice(column, width));
const whole = (x: Ref<"f32">): Ref<"f32"> => x.at(slice(0, height), slice(0, width));

const accesses: { readonly [name: string]: Access } = {
  load: {
    body: (things) => {
      things.out.store(windowOf(things.x, things).load(things.promise));
    },
  },
  "load of a transposed window": {
    body: (things) => {
      const window = windowOf(things.x, things).transpose();
      things.out.store(window.load(things.promise).transpose());
    },
  },
  "load of a reshaped window": {
    body: (things) => {
      const window = windowOf(things.x, things).reshape([height * width]);
      things.out.store(window.load(things.promise).reshape([height, width]));
    },
  },
  "load under a mask": {
    body: (things) => {
      const where = iota(i32, [1, width], { axis: 1 }).add(things.column).lt(m);
      things.out.store(windowOf(things.x, things).load({ ...things.promise, where }));
    },
    loose: "columns",
  },
  "load of a row": {
    body: ({ x, out, row, column, promise }) => {
      const values = x.at(row, slice(column, width)).load(promise);
      out.store(values.reshape([1, width]));
    },
    loose: "rows",
  },
  gather: {
    body: ({ x, out, row, column, promise }) => {
      const rows = iota(i32, [height], { axis: 0 }).add(row);
      out.store(x.at(rows, slice(column, width)).load(promise));
    },
  },
  store: {
    body: (things) => {
      things.out.store(0);
      windowOf(things.y, things).store(whole(things.x).load(), things.promise);
    },
  },
  "atomic updates by index": {
    body: ({ x, y, out, row, column, promise }) => {
      out.store(0);
      const rows = iota(i32, [height], { axis: 0 }).add(row);
      y.at(rows, slice(column, width)).atomicAdd(whole(x).load(), promise);
    },
  },
  "copy into shared memory": {
    body: (things) => {
      const { x, out, buffer, landed: on, promise } = things;
      copyAsync(windowOf(x, things), buffer, { barrier: on, ...promise });
      on.wait();
      out.store(buffer.load());
    },
  },
  "copy out of shared memory": {
    body: (things) => {
      const { x, y, out, buffer, promise } = things;
      out.store(0);
      buffer.store(whole(x).load());
      commitShared();
      copyAsync(buffer, windowOf(y, things), promise);
      commitGroup();
      waitGroup();
    },
  },
};

function made({ body }: Access, promise: Things["promise"]): KernelDefinition {
  return kernel(
    {
      name: "promised",
      inputs: { x: tensor(f32, [n, m]), row: tensor(i32, [1]), column: tensor(i32, [1]) },
      inouts: { y: tensor(f32, [n, m]) },
      outputs: { out: tensor(f32, [height, width]) },
      scratch: { buffer: smem(f32, [height, width]), landed: barrier() },
    },
    ({ row, column, ...things }) => {
      const [top, left] = [row.at(0).loadScalar(), column.at(0).loadScalar()];
      body({ ...things, row: top, column: left, promise });
    },
  );
}

/** Instructions that test something. */
function tests(definition: KernelDefinition): number {
  const text = printPtx(lower(definition.kernel, defaultTarget).module);
  return text.match(/\bsetp\.|\btrap;/g)?.length ?? 0;
}

const [rows, columns] = [20, 40];

/** What a run says on each device: sums of its results, or a code with the text of the line. */
async function outcomes(
  access: Access,
  promise: Things["promise"],
  [row, column]: readonly [number, number],
): Promise<readonly string[]> {
  const elements = Array.from({ length: rows * columns }, (_, index) => index % 97);
  const inputs = {
    x: fromNumbers(f32, [rows, columns], elements),
    row: fromNumbers(i32, [1], [row]),
    column: fromNumbers(i32, [1], [column]),
    y: fromNumbers(f32, [rows, columns], new Float32Array(rows * columns)),
  };
  const found: string[] = [];
  for (const name of ["simulator", "emulator"] as const) {
    const device = await open(name, { onNotes: () => undefined });
    try {
      const results = await device.run(made(access, promise), inputs);
      const sums = ["out", "y"].map((each) => {
        const array = results[each];
        return array === undefined
          ? NaN
          : toNumbers(array).reduce((sum, value, at) => sum + value * (1 + (at % 7)), 0);
      });
      found.push(sums.join());
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      expect(error.position?.file).toContain("promised-bounds.test.ts");
      found.push(`${error.code}: ${error.summary}`);
    } finally {
      device.dispose();
    }
  }
  return found;
}

const broken = "TW3026: an access is said to be in bounds, and is not";

test.each(Object.entries(accesses))("%s", async (_, access) => {
  const promise = { inBounds: true };
  expect(tests(made(access, promise))).toBeLessThan(tests(made(access, {})));
  const inside = [2, 4] as const;
  const kept = await outcomes(access, promise, inside);
  expect(kept).toEqual(await outcomes(access, {}, inside));
  expect(kept[0]).not.toMatch(/TW|NaN/);
  const { loose } = access;
  if (loose !== "rows") expect(await outcomes(access, promise, [8, 4])).toEqual([broken, broken]);
  const right = await outcomes(access, promise, [2, 12]);
  if (loose === "columns") expect(right[0]).toBe(right[1]);
  expect(right).toEqual(
    loose === "columns" ? await outcomes(access, {}, [2, 12]) : [broken, broken],
  );
  expect(await outcomes(access, promise, [-1, 0])).toEqual([broken, broken]);
});

test("a promise lets TMA copy from a window on a window", () => {
  const copy = (promise: { readonly inBounds?: boolean }): string => {
    const { kernel: traced } = kernel(
      {
        name: "within",
        inputs: { x: tensor(f32, [n, 64]), starts: tensor(i32, [2]) },
        outputs: { out: tensor(f32, [height, 64]) },
        scratch: { buffer: smem(f32, [height, 64]), landed: barrier() },
      },
      ({ x, starts, out, buffer, landed }) => {
        const [first, second] = [starts.at(0).loadScalar(), starts.at(1).loadScalar()];
        const window = x.at(slice(first, 64), all).at(slice(second, height), all);
        copyAsync(window, buffer, { barrier: landed, ...promise });
        landed.wait();
        out.store(buffer.load());
      },
    );
    return printPtx(lower(traced, defaultTarget).module);
  };
  expect(copy({})).not.toContain("cp.async.bulk");
  expect(copy({ inBounds: true })).toContain("cp.async.bulk");
});
