/** What does not depend on a device is computed once for all of them. */
import { expect, test } from "vitest";
import { tensor, cdiv, dim, f32, kernel, slice } from "tilewright";
import { targets } from "../targets/target.ts";
import { EmulatorBackend } from "./emulator-backend.ts";
import { SimulatorBackend } from "./simulator-backend.ts";

function made(factor: number) {
  const n = dim("n");
  return kernel(
    {
      name: "scale",
      grid: { i: cdiv(n, 64) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(64), 64);
      out.at(here).store(x.at(here).load().mul(factor));
    },
  ).kernel;
}

test("a simulator runs the kernel that another one made simpler", () => {
  const [one, other] = [made(2), made(3)];
  const { program } = new SimulatorBackend().compile(one);
  expect(new SimulatorBackend({ seed: 2 }).compile(one).program).toBe(program);
  expect(new SimulatorBackend().compile(other).program).not.toBe(program);
});

test("an emulator runs what another one of its target compiled", () => {
  const [one, other] = [made(2), made(3)];
  const first = new EmulatorBackend({ threads: 1 });
  const second = new EmulatorBackend({ threads: 1, seed: 2 });
  const older = new EmulatorBackend({ threads: 1, target: targets.sm_80 });
  const { program } = first.compile(one);
  expect(second.compile(one).program).toBe(program);
  expect(second.compile(other).program.module).not.toEqual(program.module);
  expect(older.compile(one).program.module.target).toBe("sm_80");
  expect(program.module.target).toBe("sm_90a");
});
