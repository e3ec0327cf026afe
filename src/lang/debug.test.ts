/** What programs ask to be told: tiles as they are printed, and layouts as they were chosen. */
import { expect, test } from "vitest";
import {
  bf16,
  block,
  compileAhead,
  debugPrint,
  dim,
  dot,
  f32,
  fromNumbers,
  i32,
  iota,
  kernel,
  loop,
  open,
  printLayout,
  tensor,
  toNumbers,
  zeros,
} from "tilewright";
import type { DeviceName } from "tilewright";

const long = kernel({ name: "long", outputs: { out: tensor(i32, [3, 20]) } }, ({ out }) => {
  const tile = iota(i32, [3, 20], { axis: 1 }).mul(iota(i32, [3, 20], { axis: 0 }).add(1));
  debugPrint("ends {} whole {whole} and {}", tile, tile, tile.max());
  out.store(tile);
});

async function printed(name: DeviceName): Promise<readonly string[]> {
  const lines: string[] = [];
  const device = await open(name, { onPrint: (line) => lines.push(line) });
  try {
    await device.run(long, {});
    return lines;
  } finally {
    device.dispose();
  }
}

test("tiles are printed with their ends, or whole where that is asked for, alike everywhere", async () => {
  const [line = ""] = await printed("simulator");
  const rows = [1, 2, 3].map((times) => Array.from({ length: 20 }, (_, at) => at * times));
  const ends = rows.map((row) => [...row.slice(0, 3), "…", ...row.slice(-3)].join(", "));
  const whole = rows.map((row) => row.join(", "));
  const text = (parts: readonly string[]): string => `i32[3, 20]\n[[${parts.join("],\n [")}]]`;
  expect(line).toContain(`ends ${text(ends)} whole ${text(whole)} and 57`);
  expect(await printed("emulator")).toEqual([line]);
});

/** A product in a loop that is pipelined, whose sums are asked for. */
const asked = (asks: boolean) =>
  kernel(
    {
      name: "asked",
      inputs: { a: tensor(bf16, [64, 128]), b: tensor(bf16, [128, 64]) },
      outputs: { c: tensor(f32, [64, 64]) },
    },
    ({ a, b, c }) => {
      const sums = loop({ to: 4, carry: zeros(f32, [64, 64]) }, (k, accumulator) => {
        const left = a.at(block(0, 64), block(k, 32)).load();
        return dot(left, b.at(block(k, 32)).load(), { accumulator });
      });
      if (asks) printLayout(sums, "sums");
      const twice = sums.mul(2);
      if (asks) printLayout(twice);
      c.store(twice);
    },
  );

test("the layout of a tile is told by whoever compiles it, and the kernel stays the same", async () => {
  const notes: string[] = [];
  const device = await open("emulator", {
    onNotes: (_, found) => {
      notes.push(...found.filter(({ code }) => code === "TW7514").map(({ message }) => message));
    },
  });
  try {
    const ones = (shape: readonly number[]) =>
      fromNumbers(bf16, shape, new Float32Array(8192).fill(1));
    const { c } = await device.run(asked(true), { a: ones([64, 128]), b: ones([128, 64]) });
    expect(toNumbers(c)[0]).toBe(256);
  } finally {
    device.dispose();
  }
  expect(notes.some((note) => /^sums, tile<f32, \[64, 64\]>, lies as \(.*L0.*\)$/.test(note))).toBe(
    true,
  );
  expect(notes.some((note) => note.startsWith("the tile, tile<f32, [64, 64]>, lies as ("))).toBe(
    true,
  );
  const withoutLines = (asks: boolean): string =>
    compileAhead(asked(asks), "sm_90a").ptx.replace(/\n *\.loc[^\n]*/g, "");
  expect(withoutLines(true)).toBe(withoutLines(false));
});

test("blocks of a size that is known at launch", async () => {
  const n = dim("n");
  const halves = kernel(
    {
      name: "halves",
      grid: { i: 2 },
      inputs: { x: tensor(f32, [n.mul(2)]) },
      outputs: { out: tensor(f32, [2, 8]) },
    },
    ({ i, x, out }) => {
      out.at(i).store(x.at(block(i, n)).at(block(0, 8)).load());
    },
  );
  for (const name of ["simulator", "emulator"] as const) {
    const device = await open(name);
    try {
      const x = fromNumbers(f32, [10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
      const { out } = await device.run(halves, { x });
      expect([...toNumbers(out)]).toEqual([0, 1, 2, 3, 4, 0, 0, 0, 5, 6, 7, 8, 9, 0, 0, 0]);
    } finally {
      device.dispose();
    }
  }
});
