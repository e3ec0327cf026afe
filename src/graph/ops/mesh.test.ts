import { expect, test } from "vitest";
import { readMeshGroups } from "./mesh.ts";

const mesh =
  'mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>, #stablehlo.mesh_axis<name = "y", size = 4>]>';

test("groups along a whole axis, along several, and along a part of one", () => {
  const along = (axes: string): unknown => readMeshGroups(`${mesh}, axes = [${axes}]`);
  const axis = (rest: string): string => `#stablehlo.axis_ref<name = ${rest}>`;
  expect(along(axis('"x"'))).toEqual([
    [0, 4],
    [1, 5],
    [2, 6],
    [3, 7],
  ]);
  expect(along(`${axis('"y"')}, ${axis('"x"')}`)).toEqual([[0, 4, 1, 5, 2, 6, 3, 7]]);
  expect(along(axis('"y", sub_axis_info = (1)2'))).toEqual([
    [0, 2],
    [1, 3],
    [4, 6],
    [5, 7],
  ]);
  expect(along(axis('"y", sub_axis_info = (2)2'))).toEqual([
    [0, 1],
    [2, 3],
    [4, 5],
    [6, 7],
  ]);
  expect(along(axis('"z"'))).toBeUndefined();
});
