/**
 * What `tilewright layout` is asked to draw. Its parameters combine in four ways:
 *
 *   FILE [--kernel K] [--target T]       where the tiles of a file's kernels lie
 *   --register A --shape S               a register layout on a tile
 *   --register A --to B --shape S        the tile before and after it changes layouts
 *   --shared C --shape S [--register A]  a layout in shared memory, and an access to it
 */
import type { DTypeName } from "../formats/dtype.ts";
import type { Target } from "../targets/target.ts";

/** Kernels to place. */
export interface FileRequest {
  readonly kind: "file";
  readonly file: string;
  readonly kernel: string | undefined;
  readonly target: Target;
}

/** Layouts to draw; texts and names are as given. */
export type DrawRequest =
  | { readonly kind: "register"; readonly register: string; readonly shape: readonly number[] }
  | {
      readonly kind: "relayout";
      readonly register: string;
      readonly to: string;
      readonly shape: readonly number[];
      readonly dtype: DTypeName;
    }
  | {
      readonly kind: "shared";
      readonly shared: string;
      readonly shape: readonly number[];
      readonly dtype: DTypeName;
      readonly register: string | undefined;
      readonly vectorBytes: number | undefined;
    };

export interface LayoutOptions {
  readonly kernel?: string;
  readonly target: Target;
  readonly register?: string;
  readonly to?: string;
  readonly shared?: string;
  readonly shape?: readonly number[];
  readonly dtype: DTypeName;
  readonly vectorBytes?: number;
  readonly svg?: string;
}

/** The request, or what is wrong with the parameters. */
export function layoutRequest(
  file: string | undefined,
  options: LayoutOptions,
): FileRequest | DrawRequest | string {
  if (file === undefined) return drawRequest(options);
  const { kernel, target } = options;
  const alone = (["register", "to", "shared", "shape", "vectorBytes"] as const).every(
    (name) => options[name] === undefined,
  );
  return alone
    ? { kind: "file", file, kernel, target }
    : "give a file, or a layout to draw, not both";
}

function drawRequest(options: LayoutOptions): DrawRequest | string {
  const { register, to, shared, shape, dtype, vectorBytes } = options;
  const drawn = shared ?? register;
  if (options.kernel !== undefined) return "--kernel goes with a file";
  if (drawn === undefined) return "there is nothing to draw: give a file, --register or --shared";
  if (shape === undefined) return "give the tile with --shape, such as 64x16";
  if (shared !== undefined) {
    if (to !== undefined) return "--to goes with --register alone";
    if (vectorBytes !== undefined && register === undefined)
      return "--vector-bytes needs --register, the threads that access the memory";
    return { kind: "shared", shared, shape, dtype, register, vectorBytes };
  }
  if (vectorBytes !== undefined) return "--vector-bytes goes with --shared";
  return to === undefined
    ? { kind: "register", register: drawn, shape }
    : { kind: "relayout", register: drawn, to, shape, dtype };
}
