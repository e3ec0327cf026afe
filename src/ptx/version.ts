/**
 * The lowest PTX version that a module needs: a driver refuses text that is newer than itself, so that
 * none is asked for without need. The target sets a floor; instructions may raise it.
 *
 *   | instruction                          | since | | target            | since |
 *   |--------------------------------------|-------|-|-------------------|-------|
 *   | wgmma, bulk copies, expect_tx …      | 8.0   | | sm_80             | 7.0   |
 *   | vector and packed red, st.async      | 8.1   | | sm_90             | 7.8   |
 *   | cvt.satfinite to f16 and bf16        | 8.1   | |                   |       |
 *   | wgmma.sp                             | 8.2   | | sm_90a            | 8.0   |
 *   | wgmma of s8 by u8, sparse or not     | 8.4   | | sm_100, sm_100a   | 8.6   |
 *   | parameters of more than 4352 bytes   | 8.1   | | sm_120, sm_120a   | 8.7   |
 *   | FP8 conversions; those of sm_89      | 7.8; 8.1 | | sm_86          | 7.1   |
 */
import { TilewrightError } from "../support/diagnostics.ts";
import type { TargetName } from "../targets/target.ts";
import type { PtxModule, Statement, Variable } from "./module.ts";

const targetFloors = {
  sm_80: "7.0",
  sm_86: "7.1",
  sm_87: "7.4",
  sm_89: "7.8",
  sm_90: "7.8",
  sm_90a: "8.0",
  sm_100: "8.6",
  sm_100a: "8.6",
  sm_103a: "8.8",
  sm_120: "8.7",
  sm_120a: "8.7",
  sm_121a: "8.8",
} as const satisfies { readonly [T in TargetName]: string } & { readonly [other: string]: string };
const floors: ReadonlyMap<string, string> = new Map(Object.entries(targetFloors));

/** sm_89 has them, too, but was given them later. */
const fp8Conversion = /^cvt\..*\.(e4m3x2|e5m2x2)/;

/** The first that matches an opcode counts. */
const instructionFloors: readonly (readonly [pattern: RegExp, version: string])[] = [
  [/^wgmma.*\.(s8\.u8|u8\.s8)$/, "8.4"],
  [/^wgmma\.mma_async\.sp/, "8.2"],
  [/^tcgen05\.mma\..*mxf4nvf4/, "8.7"],
  [/^(wgmma|setmaxnreg|elect|cp\.async\.bulk|cp\.reduce\.async\.bulk|fence\.proxy\.async)/, "8.0"],
  [/^(fence\.mbarrier_init|mbarrier\.expect_tx|mbarrier\.arrive\.expect_tx)/, "8.0"],
  [/^mbarrier\..*(shared::cluster|\.cluster)/, "8.0"],
  [/^(red|atom)\..*\.v[248]\./, "8.1"],
  [/^cvt\..*\.satfinite\.b?f16/, "8.1"],
  [fp8Conversion, "7.8"],
  [/^(barrier\.cluster|mapa|griddepcontrol|mbarrier\.try_wait|stmatrix)/, "7.8"],
  [/^(add|sub|mul)\.rn\.bf16/, "7.8"],
  [/^(fma\.rn|min|max|neg|abs).*\.bf16/, "7.0"],
  [/^cvt\..*bf16/, "7.8"],
  [/^mbarrier\.(test_wait\.parity|arrive\.noComplete)/, "7.1"],
];

function newest(left: string, right: string): string {
  return Number(left) >= Number(right) ? left : right;
}

const knownOpcodes = new Map<string, string>();

function opcodeFloor(opcode: string): string {
  const known = knownOpcodes.get(opcode);
  if (known !== undefined) return known;
  const found = instructionFloors.find(([pattern]) => pattern.test(opcode))?.[1] ?? "7.0";
  knownOpcodes.set(opcode, found);
  return found;
}

/** Where the last parameter of a kernel ends. */
function parameterBytes(parameters: readonly Variable[]): number {
  let end = 0;
  for (const { type, count = 1, alignment } of parameters) {
    const bytes = Number(/\d+/.exec(type)?.[0] ?? 64) / 8;
    const unit = alignment ?? bytes;
    end = Math.ceil(end / unit) * unit + count * bytes;
  }
  return end;
}

/** The version that a body for the target needs, with the parameters of its kernel. */
export function ptxVersion(
  target: string,
  body: readonly Statement[],
  parameters: readonly Variable[] = [],
): string {
  const floor = floors.get(target);
  if (floor === undefined)
    throw new TilewrightError({
      code: "TW7001",
      message: `PTX for ${target} is not known`,
      expected: Object.keys(targetFloors).join(", "),
      found: target,
    });
  const opcodes = new Set<string>();
  body.forEach((statement) => {
    if (statement.kind === "instruction") opcodes.add(statement.opcode);
  });
  let version = parameterBytes(parameters) > 4352 ? newest(floor, "8.1") : floor;
  for (const opcode of opcodes) version = newest(version, opcodeFloor(opcode));
  const isLate = target === "sm_89" && [...opcodes].some((opcode) => fp8Conversion.test(opcode));
  if (isLate) return newest(version, "8.1");
  return version;
}

/** Whether the first version is older than the second. */
export function isOlderPtx(version: PtxModule["version"], than: PtxModule["version"]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [otherMajor = 0, otherMinor = 0] = than.split(".").map(Number);
  return major < otherMajor || (major === otherMajor && minor < otherMinor);
}
