import { expect, test } from "vitest";
import { GraphBuilder } from "../graph/infer/builder.ts";
import { tensor } from "../graph/evaluate/value.ts";
import { graphRegion, graphValue } from "../graph/ops/node.ts";
import { dialectAttribute } from "../graph/ops/attribute.ts";
import { tensorType } from "../graph/ops/types.ts";
import { localLinks } from "../graph/ranks/link.ts";
import { RankTeam } from "../graph/ranks/team.ts";
import { MeshRunner } from "./runner.ts";

test("of several processes, each reads what it has whole and is refused the rest", async () => {
  const links = localLinks(2);
  const teams = await Promise.all(
    [0, 1].map((rank) =>
      RankTeam.join(rank, links(rank), { size: 2, device: "cpu", timeout: 5000 }),
    ),
  );
  const half = tensorType("f32", [1]);
  const whole = tensorType("f32", [2]);
  const [own, x] = [graphValue(half), graphValue(whole)];
  const builder = new GraphBuilder();
  const body = graphRegion([own], [], [own]);
  const cut = dialectAttribute("sdy.in_shardings", '<mesh<["d"=2]>, [{"d"}]>');
  const results = builder.add(
    "sdy.manual_computation",
    { tensors: [x] },
    {
      in_shardings: cut,
      out_shardings: cut,
      manual_axes: dialectAttribute("sdy.manual_axes", '"d"'),
    },
    { regions: { body }, types: [whole] },
  );
  const graph = graphRegion([x], builder.ops, [...results, x]);
  const given = tensor("f32", [2], Float32Array.of(1, 2));
  const runs = await Promise.all(
    teams.map((team) =>
      new MeshRunner(() => Promise.resolve(team)).run(graph, [given], { matmulPrecision: "f32" }),
    ),
  );
  for (const [parts, same] of runs) {
    expect(Array.from((await same?.read())?.data ?? [], Number)).toEqual([1, 2]);
    await expect(parts?.read()).rejects.toThrow(/TW9710: an array is cut over ranks of other/);
  }
  await Promise.all(teams.map((team) => team.close()));
});
