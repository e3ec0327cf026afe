import { describe, expect, test } from "vitest";
import { bodyText } from "../../test/language.ts";
import { readText } from "../../test/source-files.ts";
import { verifyKernel } from "../ir/verify/index.ts";
import { bf16, f32, i32, i4 } from "../formats/dtype.ts";
import {
  tensor,
  barrier,
  cdiv,
  dim,
  gmem,
  isKernelDefinition,
  kernel,
  scalar,
  semaphore,
  smem,
  union,
} from "./index.ts";

const n = dim("n", { multipleOf: 8 });

describe("kernels", () => {
  test("the header follows from the specification", () => {
    const definition = kernel(
      {
        name: "everything",
        grid: { rows: cdiv(n, 64), columns: 4 },
        cluster: { columns: 2 },
        threads: ["load", "compute"],
        inputs: { x: tensor(f32, [n, 4], { strides: [8, 1] }), alpha: scalar(bf16) },
        outputs: { out: tensor(f32, [n]) },
        inouts: { state: tensor(i32, [2]) },
      },
      () => undefined,
    );
    expect(String(definition)).toMatchInlineSnapshot(`
      "kernel @everything dimensions [n multiple 8] grid [rows = ceildiv(n, 64), columns = 4 cluster 2] threads [load, compute] (
        input %0 "x": ref<gmem, f32, [n, 4]> strides [8, 1],
        scalar %1 "alpha": bf16,
        output %2 "out": ref<gmem, f32, [n]>,
        inout %3 "state": ref<gmem, i32, [2]>
      ) {
        %4 = block_index {axis = "rows"} : i32
        %5 = block_index {axis = "columns"} : i32
        yield
      }"
    `);
  });

  test("without grid and threads there is one block of one thread", () => {
    const { kernel: ir } = kernel({ name: "least" }, () => undefined);
    expect(ir.grid).toEqual([]);
    expect(ir.threads).toEqual(["main"]);
  });

  test("the IR passes the verifier and is frozen", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => x.load());
    expect(() => {
      verifyKernel(definition.kernel);
    }).not.toThrow();
    expect(Object.isFrozen(definition)).toBe(true);
    expect(isKernelDefinition(definition)).toBe(true);
    expect(isKernelDefinition(definition.kernel)).toBe(false);
  });

  test("ops know the line that made them", () => {
    const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      x.load(); // marked
    });
    const position = definition.kernel.body.ops[0]?.location.position;
    const line = readText("src/lang/kernel.test.ts").split("\n")[(position?.line ?? 0) - 1];
    expect(line).toContain("// marked");
  });

  test("scratch is allocated before the body runs", () => {
    const definition = kernel(
      {
        name: "k",
        grid: { i: 2 },
        inputs: { x: tensor(f32, [n]) },
        scratch: {
          near: smem(bf16, [8, 8]),
          far: gmem(f32, [n]),
          ready: barrier({ arrivals: 2, count: 3 }),
          done: semaphore(),
        },
      },
      ({ done }) => {
        done.signal();
      },
    );
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%1 = block_index {axis = "i"} : i32
      %2 = alloc {space = smem, dtype = bf16, shape = [8, 8], name = "near"} : ref<smem, bf16, [8, 8]>
      %3 = alloc {space = gmem, dtype = f32, shape = [n], name = "far"} : ref<gmem, f32, [n]>
      %4 = alloc_barrier {count = 3, arrivals = 2, name = "ready"} : barrier<3, arrivals=2>
      %5 = alloc_semaphore {shape = [], name = "done"} : semaphore<[]>
      %6 = constant {value = 1, dtype = i32, shape = []} : i32
      semaphore_signal %5, %6
      yield"
    `);
  });

  test("a union's groups share bytes, its members are aligned", () => {
    const definition = kernel(
      {
        name: "k",
        scratch: {
          shared: union({ a: smem(f32, [10]), b: smem(f32, [64]) }, { c: smem(i4, [801]) }),
        },
      },
      ({ shared: { a, b, c } }) => {
        a.store(0);
        b.store(1);
        c.store(2);
      },
    );
    expect(bodyText(definition)).toMatchInlineSnapshot(`
      "%0 = alloc_union {bytes = 512, name = "shared"} : ref<smem, u8, [512]>
      %1 = union_member %0 {group = 0, offset = 0, dtype = f32, shape = [10], name = "a"} : ref<smem, f32, [10]>
      %2 = union_member %0 {group = 0, offset = 128, dtype = f32, shape = [64], name = "b"} : ref<smem, f32, [64]>
      %3 = union_member %0 {group = 1, offset = 0, dtype = i4, shape = [801], name = "c"} : ref<smem, i4, [801]>
      %4 = constant {value = 0, dtype = f32, shape = [10]} : tile<f32, [10]>
      store %1, %4
      %5 = constant {value = 1, dtype = f32, shape = [64]} : tile<f32, [64]>
      store %2, %5
      %6 = constant {value = 2, dtype = i4, shape = [801]} : tile<i4, [801]>
      store %3, %6
      yield"
    `);
  });
});
