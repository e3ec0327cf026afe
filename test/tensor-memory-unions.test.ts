/**
 * Tensor memory whose columns are used again: members of unions, buffers of scopes, tiles by their number, slices at any column. The same numbers on the
 * simulator and the emulator, and those of exact sums of small integers; what is used too early is found.
 */
import { describe, expect, test } from "vitest";
import {
  all,
  barrier,
  bf16,
  commitShared,
  f16,
  f32,
  fromNumbers,
  kernel,
  loop,
  open,
  scoped,
  slice,
  smem,
  tcgen05Commit,
  tcgen05Mma,
  tensor,
  tmem,
  toNumbers,
  union,
  zeros,
} from "tilewright";
import type { Barrier, HostArray, KernelDefinition, Ref } from "tilewright";
import { lower } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";
import { reportOf } from "./ir-fixtures.ts";
import { runKernel, schedules } from "./simulation.ts";

const [rows, inner, columns] = [128, 64, 32];

const entry = {
  a: (row: number, column: number): number => ((row * 7 + column * 3) % 3) - 1,
  b: (row: number, column: number): number => ((row * 5 + column * 11) % 3) - 1,
  c: (row: number, column: number): number => ((row * 3 + column * 13) % 5) - 2,
};

function matrix(count: number, width: number, of: (row: number, column: number) => number) {
  const values = Float64Array.from({ length: count * width }, (_, at) =>
    of(Math.floor(at / width), at % width),
  );
  return fromNumbers(bf16, [count, width], values);
}

const inputs: { readonly [name: string]: HostArray } = {
  a: matrix(rows, inner, entry.a),
  b: matrix(inner, inner, entry.b),
  c: matrix(inner, columns, entry.c),
};

type Rows = readonly (readonly number[])[];

function table(count: number, width: number, of: (row: number, column: number) => number): Rows {
  return Array.from({ length: count }, (_, row) =>
    Array.from({ length: width }, (__, column) => of(row, column)),
  );
}

function times(left: Rows, right: Rows): Rows {
  return left.map((row) =>
    (right[0] ?? []).map((_, column) =>
      row.reduce((sum, factor, at) => sum + factor * (right[at]?.[column] ?? 0), 0),
    ),
  );
}

const first = times(table(rows, inner, entry.a), table(inner, inner, entry.b));
/** Small enough for bf16 to hold exactly. */
const both = times(first, table(inner, columns, entry.c));

/** Those that the kernel takes. */
function inputsOf({ kernel: { parameters } }: KernelDefinition): {
  readonly [name: string]: HostArray;
} {
  const names = new Set(parameters.map(({ name }) => name));
  return Object.fromEntries(Object.entries(inputs).filter(([name]) => names.has(name)));
}

async function onBoth(definition: KernelDefinition, expected: readonly number[]): Promise<void> {
  for (const kind of ["simulator", "emulator"] as const) {
    const device = await open(kind, { target: "sm_100a" });
    try {
      const results = await device.run(definition, inputsOf(definition) as never);
      const out = (results as { readonly [name: string]: Parameters<typeof toNumbers>[0] })["out"];
      expect([...toNumbers(out ?? expect.fail())], kind).toEqual(expected);
    } finally {
      device.dispose();
    }
  }
  if (!hasPtxas) return;
  const { module } = lower(definition.kernel, targets.sm_100a);
  expect(assemble(printPtx(module), "sm_100a")).toBe("");
}

interface Parts {
  readonly sums: Ref<"f32">;
  readonly factor: Ref<"bf16">;
  readonly second: Ref<"f32">;
  readonly a: Ref<"bf16">;
  readonly b: Ref<"bf16">;
  readonly c: Ref<"bf16">;
  readonly done: Barrier;
  readonly out: Ref<"f32">;
}

/** Two products of which the second one's factor and sums lie where the first one's sums were. */
function chain(body: (parts: Parts) => void): KernelDefinition {
  return kernel(
    {
      name: "chain",
      inputs: {
        a: tensor(bf16, [rows, inner]),
        b: tensor(bf16, [inner, inner]),
        c: tensor(bf16, [inner, columns]),
      },
      outputs: { out: tensor(f32, [rows, columns]) },
      scratch: {
        place: union(
          { sums: tmem(f32, [rows, inner]) },
          {
            factor: tmem(bf16, [rows, inner], { packed: true }),
            second: tmem(f32, [rows, columns]),
          },
        ),
        ownA: smem(bf16, [rows, inner]),
        ownB: smem(bf16, [inner, inner]),
        ownC: smem(bf16, [inner, columns]),
        done: barrier(),
      },
    },
    ({ a, b, c, out, place, ownA, ownB, ownC, done }) => {
      ownA.store(a.load());
      ownB.store(b.load());
      ownC.store(c.load());
      commitShared();
      body({ ...place, a: ownA, b: ownB, c: ownC, done, out });
    },
  );
}

const inTurn = ({ sums, factor, second, a, b, c, done, out }: Parts): void => {
  tcgen05Mma(sums, a, b, { adds: false });
  tcgen05Commit(done);
  done.wait();
  factor.store(sums.load().cast(bf16));
  tcgen05Mma(second, factor, c, { adds: false });
  tcgen05Commit(done);
  done.wait();
  out.store(second.load());
};

async function findings(definition: KernelDefinition): Promise<string> {
  const found = new Set<string>();
  for (const schedule of schedules) {
    const run = await runKernel(definition, inputsOf(definition), {
      ...schedule,
      target: targets.sm_100a,
    });
    for (const finding of run.findings) found.add(JSON.stringify(finding));
  }
  return [...found].join("\n");
}

describe("37: members of a union", () => {
  test("take turns", async () => {
    await onBoth(chain(inTurn), both.flat());
    expect(await findings(chain(inTurn))).toBe("");
  });

  test("cannot be stored while a product adds to another one", async () => {
    const early = chain(({ sums, factor, a, b, done }) => {
      tcgen05Mma(sums, a, b, { adds: false });
      factor.store(factor.load());
      tcgen05Commit(done);
      done.wait();
    });
    expect(await findings(early)).toMatch(/data race on place: store and tcgen05Mma/);
  });

  test("cannot be added to while a product reads another one", async () => {
    const early = chain(({ sums, factor, a, b, c, second, done, out }) => {
      factor.store(sums.load().cast(bf16));
      tcgen05Mma(second, factor, c, { adds: false });
      tcgen05Mma(sums, a, b, { adds: false });
      tcgen05Commit(done);
      done.wait();
      out.store(second.load());
    });
    expect(await findings(early)).toMatch(/data race on place: tcgen05Mma and tcgen05Mma/);
  });

  test("are not read as what another one has been written", async () => {
    const wrong = chain(({ sums, second, a, b, done, out }) => {
      tcgen05Mma(sums, a, b, { adds: false });
      tcgen05Commit(done);
      done.wait();
      out.store(second.load());
    });
    expect(await findings(wrong)).toMatch(
      /load of second reads bytes of place that sums has written/,
    );
  });
});

describe("37: buffers of scopes", () => {
  const stages = (pairs: number) =>
    kernel(
      {
        name: "stages",
        inputs: { a: tensor(bf16, [rows, inner]), b: tensor(bf16, [inner, inner]) },
        outputs: { out: tensor(f32, [rows, inner]) },
        scratch: {
          ownA: smem(bf16, [rows, inner]),
          ownB: smem(bf16, [inner, inner]),
          done: barrier(),
        },
      },
      ({ a, b, out, ownA, ownB, done }) => {
        ownA.store(a.load());
        ownB.store(b.load());
        commitShared();
        for (let turn = 0; turn < pairs; turn += 1)
          scoped({ sums: tmem(f32, [6, rows, inner]) }, ({ sums }) => {
            const into = sums.at(turn);
            tcgen05Mma(into, ownA, ownB, { adds: false });
            tcgen05Commit(done);
            done.wait();
            out.store(into.load());
          });
      },
    );

  test("one behind the other have the same columns", async () => {
    const definition = stages(2);
    await onBoth(definition, first.flat());
    expect(await findings(definition)).toBe("");
  });

  /** Two buffers of the kernel and two of scopes, in which one lane's work is done when it is over. */
  const many = (width: number) => {
    const buffer = (): ReturnType<typeof tmem<"f32">> => tmem(f32, [2, rows, width]);
    return kernel(
      {
        name: "many",
        outputs: { out: tensor(f32, [rows, 8]) },
        scratch: { left: buffer(), done: barrier() },
      },
      ({ out, left, done }) => {
        const use = (into: Ref<"f32">): void => {
          const part = into.at(0, all, slice(0, 8));
          part.store(zeros(f32, [rows, 8]));
          out.store(part.load());
        };
        use(left);
        for (const name of ["first", "second"])
          scoped({ [name]: buffer() }, (own) => {
            for (const each of Object.values(own)) use(each);
          });
        tcgen05Commit(done);
        done.wait();
      },
    );
  };

  test("where they do not fit, the columns of each are told", () => {
    // The scopes have the same columns, behind those of `left`.
    expect(() => lower(many(128).kernel, targets.sm_100a)).not.toThrow();
    const { code, notes, remedy } = reportOf(() => lower(many(272).kernel, targets.sm_100a));
    expect(code).toBe("TW6108");
    expect(notes.map(({ message }) => message)).toEqual([
      "left: 544 columns",
      "first: 544 columns",
      "second: 544 columns",
    ]);
    expect(remedy).toContain("scoped or union");
  });
});

describe("37: tiles by their number", () => {
  test("each is added to and loaded", async () => {
    const definition = kernel(
      {
        name: "numbered",
        inputs: { a: tensor(bf16, [rows, inner]), b: tensor(bf16, [inner, inner]) },
        outputs: { out: tensor(f32, [3, rows, inner]) },
        scratch: {
          sums: tmem(f32, [3, rows, inner]),
          ownA: smem(bf16, [rows, inner]),
          ownB: smem(bf16, [inner, inner]),
          done: barrier(),
        },
      },
      ({ a, b, out, sums, ownA, ownB, done }) => {
        ownA.store(a.load());
        ownB.store(b.load());
        commitShared();
        loop(3, (tile) => {
          tcgen05Mma(sums.at(tile), ownA, ownB, { adds: false });
          tcgen05Mma(sums.at(tile), ownA, ownB, { adds: tile.gt(0) });
          tcgen05Commit(done);
          done.wait();
        });
        loop(3, (tile) => {
          out.at(tile).store(sums.at(tile).load());
        });
      },
    );
    const twice = first.flat().map((each) => 2 * each);
    await onBoth(definition, [...first.flat(), ...twice, ...twice]);
  });
});

describe("28: slices of columns", () => {
  test.each([
    ["of their own", f32, false, 40],
    ["of narrow elements", f16, false, 24],
    ["shared by two elements", f16, true, 48],
    ["in a union", bf16, true, 48],
  ] as const)("%s", async (name, dtype, packed, from) => {
    const width = 16;
    const spec = tmem(dtype, [rows, 64], { packed });
    const isUnion = name === "in a union";
    const definition = kernel(
      {
        name: "slices",
        inputs: { a: tensor(bf16, [rows, inner]) },
        outputs: { out: tensor(f32, [rows, inner]) },
        scratch: {
          place: union({ before: tmem(f32, [rows, 5]), tile: spec }),
          own: spec,
        },
      },
      ({ a, out, place, own }) => {
        const tile = isUnion ? place.tile : own;
        tile.store(a.load().cast(dtype));
        const part = tile.at(all, slice(from, width));
        part.store(part.load().cast(f32).mul(3).cast(dtype));
        out.store(tile.load().cast(f32));
      },
    );
    const expected = table(rows, inner, (row, column) => {
      const inside = column >= from && column < from + width;
      return (inside ? 3 : 1) * entry.a(row, column);
    });
    await onBoth(definition, expected.flat());
  });
});
