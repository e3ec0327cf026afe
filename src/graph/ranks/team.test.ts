import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tensor } from "../evaluate/value.ts";
import { receivedTensor, sentTensor } from "./link.ts";
import type { RankAnswer } from "./server.ts";
import { RankTeam } from "./team.ts";

const text = `module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.partition_id : tensor<ui32>
    %3 = stablehlo.convert %2 : (tensor<ui32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %5 = stablehlo.multiply %0, %4 : tensor<4xf32>
    return %5 : tensor<4xf32>
  }
}`;
const load = {
  kind: "load",
  program: 0,
  text,
  file: "sum.mlir",
  name: "main",
  donated: [],
  matmulPrecision: "f32",
} as const;

const given = (rank: number) => tensor("f32", [4], Float32Array.of(rank, 1, 2, 3 * rank));

function numbersOf(answers: readonly RankAnswer[]): readonly (readonly number[])[] {
  return answers.map((answer) =>
    answer.kind === "tensor" ? Array.from(receivedTensor(answer.value).data, Number) : [],
  );
}

// Ranks take turns on one thread here: threads load the built library, which sources do not have.
describe("ranks on one thread", () => {
  let team: RankTeam;
  beforeAll(async () => {
    team = await RankTeam.open({
      size: 4,
      device: "cpu",
      timeout: 5000,
      inline: true,
    });
  });
  afterAll(async () => {
    await team.close();
  });

  test("run a program on data and on arrays that they hold", async () => {
    expect(team.isThreaded).toBe(false);
    await team.all(load);
    await team.each((rank) => ({
      kind: "run",
      program: 0,
      inputs: [sentTensor(given(rank))],
      outputs: [1],
      donated: [],
    }));
    const sums = [6, 4, 8, 18];
    const read = { kind: "read", array: 1 } as const;
    expect(numbersOf(await team.all(read))).toEqual(
      [0, 1, 2, 3].map((rank) => sums.map((x) => x * rank)),
    );
    await team.all({ kind: "run", program: 0, inputs: [1], outputs: [2], donated: [1] });
    const [, second] = numbersOf(await team.all({ kind: "read", array: 2 }));
    expect(second).toEqual([36, 24, 48, 108]);
    const [record] = await team.all({ kind: "record" });
    expect(record?.kind === "record" ? record.lines.at(-1) : "").toMatch(
      /all_reduce \(add\) of tensor<4xf32>, sum\.mlir:3:10, \d/,
    );
  });

  test("other programs on one rank are refused before they run", async () => {
    const other = (rank: number) => ({
      ...load,
      program: 1,
      text: rank === 2 ? `${text}\n` : text,
    });
    await expect(team.each(other)).rejects.toThrow(/TW9701: ranks 0 and 2 are at different calls/);
  });
});
