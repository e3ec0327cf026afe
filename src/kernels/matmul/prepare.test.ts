/** How operands are brought into a form that products read. */
import { expect, test } from "vitest";
import { f32 } from "../../formats/dtype.ts";
import { array, dim } from "../../lang/index.ts";
import { lower } from "../../lower/pipeline.ts";
import { printPtx } from "../../ptx/printer.ts";
import { targets } from "../../targets/target.ts";
import { matmul } from "./matmul.ts";

test.each(["tf32", "bf16x3"] as const)(
  "operands of %s are prepared in one launch, by wide accesses alone",
  (precision) => {
    const a = array(f32, [dim("m"), dim("k")], { strides: [1, dim("m")] });
    const op = matmul({ a, b: f32, precision });
    const [prepare, ...others] = op.kernels({ m: 4096, n: 4096, k: 4096 });
    expect(others).toHaveLength(1);
    if (prepare === undefined) throw new Error("nothing is prepared");
    const text = printPtx(lower(prepare.kernel, targets.sm_90a).module);
    const moves = text.match(/(?:ld|st)\.global\S*/g) ?? [];
    expect(moves.length).toBeGreaterThan(0);
    expect(moves.filter((move) => !/\.v[24]\.b32$/.test(move))).toEqual([]);
  },
);
