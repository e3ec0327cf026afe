/**
 * Who may be where at the same time: warps of a thread that fall behind, warps on their own in different
 * places of one body, memory and barriers that begin and end around them.
 */
import { f32, i32 } from "../../src/formats/dtype.ts";
import {
  array,
  barrier,
  blockSync,
  constant,
  copyAsync,
  kernel,
  loop,
  scoped,
  slice,
  smem,
  warps,
  when,
  whileLoop,
} from "../../src/lang/index.ts";
import type { KernelDefinition } from "../../src/lang/index.ts";
import { exact } from "./case.ts";
import type { Arrays, MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

function one(name: string, inputs: Arrays, make: () => KernelDefinition): MatrixCase {
  return { name, prepare: () => ({ definition: make(), inputs, tolerance: exact }) };
}

const x = ordinaryNumbers(f32, [4, 32, 32], 5);
const inputs = { x: array(f32, [4, 32, 32]) };
const outputs = { out: array(f32, [4, 32, 32]) };
const buffer = smem(f32, [32, 32]);

function laggingCases(): readonly MatrixCase[] {
  return [
    one("copies and waits with nothing between", { x }, () =>
      kernel(
        { name: "ahead", inputs, outputs, scratch: { buffer, landed: barrier() } },
        ({ x: source, out, buffer: own, landed }) => {
          loop(9, (round) => {
            copyAsync(source.at(round.rem(4)), own, { barrier: landed });
            landed.wait();
          });
          loop(4, (row) => out.at(row).store(own.load()));
        },
      ),
    ),
    one("a condition reads what is written behind the loop", { x }, () =>
      kernel(
        { name: "condition", inputs, outputs, scratch: { flag: smem(i32, [1]) } },
        ({ x: source, out, flag }) => {
          flag.at(0).store(0);
          blockSync();
          const rounds = whileLoop(
            constant(i32, 0),
            () => flag.at(0).loadScalar().lt(5),
            (round) => {
              flag.at(0).store(round.add(1));
              blockSync();
              return round.add(1);
            },
          );
          flag.at(0).store(rounds.add(100));
          out.store(source.load().add(flag.at(0).loadScalar().cast(f32)));
        },
      ),
    ),
  ];
}

function warpCases(): readonly MatrixCase[] {
  return [
    one("buffers of different warps", { x }, () =>
      kernel(
        { name: "apart", inputs, outputs, scratch: { a: buffer, b: buffer } },
        ({ x: source, out, a, b }) => {
          warps((warp) => {
            when(warp.eq(0), () => {
              a.store(source.at(0).load());
              out.at(0).store(a.transpose().load());
            });
            when(warp.eq(1), () => {
              b.store(source.at(1).load());
              out.at(1).store(b.transpose().load());
            });
          });
          out.at(slice(2, 2)).store(0);
        },
      ),
    ),
    one("buffers of warps that are not at the same place", { x }, () =>
      kernel(
        {
          name: "in_turn",
          inputs,
          outputs,
          scratch: { a: smem(f32, [4, 32, 32]), b: smem(f32, [4, 32, 32]) },
        },
        ({ x: source, out, a, b }) => {
          warps((warp) => {
            const other = constant(i32, 3).sub(warp);
            a.at(warp).store(source.at(warp).load());
            b.at(other).store(a.at(warp).transpose().load().add(1));
            out.at(warp).store(b.at(other).transpose().load());
          });
        },
      ),
    ),
  ];
}

function allocationCases(): readonly MatrixCase[] {
  return [
    one("a barrier allocated before a buffer", { x }, () =>
      kernel(
        {
          name: "first",
          inputs,
          outputs,
          scratch: { landed: barrier(), whole: smem(f32, [4, 32, 32]) },
        },
        ({ x: source, out, landed, whole }) => {
          copyAsync(source, whole, { barrier: landed });
          landed.wait();
          out.store(whole.load());
        },
      ),
    ),
    one("a barrier that begins anew in every round", { x }, () =>
      kernel({ name: "anew", inputs, outputs }, ({ x: source, out }) => {
        loop(4, (round) => {
          scoped({ landed: barrier(), buffer }, ({ landed, buffer: own }) => {
            copyAsync(source.at(round), own, { barrier: landed });
            landed.wait();
            out.at(round).store(own.load());
          });
        });
      }),
    ),
  ];
}

export function turnCases(): readonly MatrixCase[] {
  return [...laggingCases(), ...warpCases(), ...allocationCases()];
}
