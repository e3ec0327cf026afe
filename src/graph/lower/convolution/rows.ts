/**
 * Convolutions by rows of windows (`normal/row-convolutions.ts`): each block sums products of small matrices that lie in memory,
 *
 *   forward          a block makes a part of a row        out[b, row, part] = Σ tap   x[b, row + tap, part + tap] · w[tap]
 *   gradient of w    a block makes what a tap changes by  dw[tap] = Σ b, row          x[b, row + tap]ᵀ · dOut[b, row]
 */
import { dtypes } from "../../../formats/dtype.ts";
import { dot, loop, slice, zeros } from "../../../lang/index.ts";
import { sizeOf } from "../../ops/types.ts";
import { converted } from "../tiles/convert.ts";
import type { TiledKernel } from "../tiled/tiled.ts";
import { precisionOf, typesOf } from "./shared.ts";
import type { Convolution, Types } from "./shared.ts";

/** Positions of a row that a block makes at most. */
const mostPositions = 64;

/** The most positions that divide a row: windows that go over its end are slow. */
function partOf(positions: number): number {
  for (let part = Math.min(positions, mostPositions); part >= 8; part -= 1)
    if (positions % part === 0) return part;
  return positions;
}

export function rowsKernel(op: Convolution): TiledKernel {
  const types = typesOf(op);
  if (types === undefined) throw new Error("a convolution has a result");
  const isForward = op.attributes.dimension_numbers.input_batch_dimension === 0;
  return isForward ? forwardKernel(op, types) : weightsKernel(op, types);
}

function forwardKernel(op: Convolution, { lhs, rhs, out }: Types): TiledKernel {
  const [batch = 1, rows = 1, positions = 1, outputs = 1] = out.shape;
  const [high = 1, wide = 1, channels = 1] = rhs.shape;
  const [down = 1, across = 1] = op.attributes.rhs_dilation ?? [];
  const part = partOf(positions);
  return {
    title: "rows",
    grid: { image: batch, row: rows, part: positions / part },
    loadsWindows: true,
    body: ({ ref, outputs: [target], at }) => {
      const x = ref(op.operands.lhs).reshape(lhs.shape);
      const w = ref(op.operands.rhs).reshape(rhs.shape);
      const start = at("part").mul(part);
      const sums = loop(
        { to: high * wide, carry: zeros(dtypes.f32, [part, outputs]) },
        (tap, partial) => {
          const [i, j] = [tap.div(wide), tap.rem(wide)];
          const from = start.add(j.mul(across));
          const row = at("row").add(i.mul(down));
          const windows = x.at(at("image"), row, slice(from, part), slice(0, channels)).load();
          const weights = w.at(i, j, slice(0, channels), slice(0, outputs)).load();
          return dot(windows, weights, {
            accumulator: partial,
            dtype: dtypes.f32,
            ...precisionOf(op),
          });
        },
      );
      target
        ?.reshape(out.shape)
        .at(at("image"), at("row"), slice(start, part), slice(0, outputs))
        .store(converted(sums, "f32", out.element));
    },
  };
}

function weightsKernel(op: Convolution, { lhs, rhs, out }: Types): TiledKernel {
  const [high = 1, wide = 1, channels = 1, outputs = 1] = out.shape;
  const [batch = 1, rows = 1, positions = 1] = rhs.shape;
  return {
    title: "rows",
    grid: { down: high, across: wide },
    loadsWindows: true,
    body: ({ ref, outputs: [target], at }) => {
      const x = ref(op.operands.lhs).reshape(lhs.shape);
      const gradient = ref(op.operands.rhs).reshape(rhs.shape);
      const none = zeros(dtypes.f32, [channels, outputs]);
      const sums = loop({ to: sizeOf([batch, rows]), carry: none }, (step, partial) => {
        const [image, row] = [step.div(rows), step.rem(rows)];
        const along = slice(at("across"), positions);
        const windows = x.at(image, row.add(at("down")), along, slice(0, channels)).load();
        const here = gradient.at(image, row, slice(0, positions), slice(0, outputs)).load();
        return dot(windows.transpose(), here, {
          accumulator: partial,
          dtype: dtypes.f32,
          ...precisionOf(op),
        });
      });
      target
        ?.reshape(out.shape)
        .at(at("down"), at("across"), slice(0, channels), slice(0, outputs))
        .store(converted(sums, "f32", out.element));
    },
  };
}
