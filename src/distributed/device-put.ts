/** Puts arrays on ranks, each with its part, where programs over the mesh find them. */
import { jit } from "../arrays/jit.ts";
import { NDArray } from "../arrays/array.ts";
import type { DTypeName } from "../formats/dtype.ts";
import type { NamedSharding } from "./mesh.ts";
import { shardMap } from "./shard-map.ts";

const puts = new WeakMap<NamedSharding, (x: NDArray) => NDArray>();

/** The array, cut over the ranks of a mesh. */
export function devicePut<D extends DTypeName>(x: NDArray<D>, sharding: NamedSharding): NDArray<D> {
  const { mesh, spec } = sharding;
  const put =
    puts.get(sharding) ??
    jit(shardMap((own: NDArray) => own, { mesh, inSpecs: [spec], outSpecs: spec }));
  puts.set(sharding, put);
  return new NDArray<D>(put(x).value);
}
