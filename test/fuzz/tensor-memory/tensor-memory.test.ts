/**
 * Random programs on tensor memory, of sm_100a: simulator and emulator agree bit for bit, and lie within the bound of what was computed beside them. Some here, 300 by TILEWRIGHT_CASES=all;
 * `npm run fuzz -- --kinds tensorMemory,tensorRoles --kernels 5000 --minutes 600 --jobs 2` runs more.
 */
import { expect, test } from "vitest";
import { Random } from "../../../src/support/random.ts";
import { takesAll } from "../../support/sample.ts";
import { Campaign } from "../campaign.ts";
import { seedsOf } from "../jobs.ts";
import { judge } from "../run.ts";
import { subjectOf, tensorKinds } from "../subjects.ts";
import { drawPlan } from "./draft.ts";
import type { Statement } from "./plan.ts";

test("simulator and emulator agree", { timeout: 600_000 }, async () => {
  const campaign = new Campaign({ kinds: tensorKinds, targets: ["sm_100a"] });
  const { failures, refused, byKind } = await campaign.run(
    seedsOf({ first: 1, count: takesAll ? 300 : 16 }),
  );
  expect(failures.map(({ seed, why }) => `seed ${seed}: ${why}`)).toEqual([]);
  expect(refused).toEqual({});
  for (const kind of tensorKinds) expect(byKind[kind], kind).toBeGreaterThan(0);
});

test("a result beyond its bound is told apart", async () => {
  const subject = subjectOf(1, ["sm_100a"], tensorKinds);
  const { near = {} } = subject;
  const moved = Object.fromEntries(
    Object.entries(near).map(([name, { values, bounds }]) => {
      const away = values.map((value, at) => value + 1.01 * (bounds[at] ?? 0) + 1e-3);
      return [name, { values: away, bounds: bounds.map(() => 0) }];
    }),
  );
  expect(await judge({ ...subject, near: moved })).toMatchObject({
    why: expect.stringMatching(/^the simulator gives other elements/) as string,
  });
});

test("plans have everything that there is", () => {
  const seen = new Set<string>();
  const visit = (statements: readonly Statement[]): void => {
    for (const statement of statements) {
      seen.add(statement.kind);
      if (statement.kind === "multiply") seen.add(statement.adds);
      if (statement.kind === "load" || statement.kind === "store")
        seen.add(statement.shape ?? "usual");
      if ("body" in statement) visit(statement.body);
    }
  };
  for (let seed = 0; seed < 150; seed += 1) {
    const { groups, statements } = drawPlan(new Random(seed));
    visit(statements);
    for (const { a, sum, rows, lefts, rights, isScaled } of groups) {
      for (const each of [a.name, `into ${sum.name}`, `${rows} rows`]) seen.add(each);
      for (const { place } of lefts) seen.add(place);
      for (const { along } of rights) seen.add(along ? "right along" : "right across");
      if (isScaled) seen.add("scaled");
    }
  }
  expect([...seen].sort()).toEqual(
    [
      ...["store", "multiply", "commit", "wait", "load", "refill", "scales", "loop", "when"],
      ...["always", "never", "later", "flag", "usual"],
      ...["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"],
      ...["f16", "bf16", "tf32", "f8e4m3fn", "f8e5m2", "i8", "u8"],
      ...["into f16", "into f32", "into i32", "64 rows", "128 rows", "scaled"],
      ...["along", "across", "tensor", "right along", "right across"],
    ].sort(),
  );
});
