/** Machine code in which registers of products in flight are touched, and such in which they are not. */
import { expect, test } from "vitest";
import { touchedInFlight } from "./support/machine-flights.ts";

/** Lines as `nvdisasm -c` writes them, with addresses. */
function listing(...lines: readonly string[]): string {
  return lines
    .map((line, index) => {
      const at = (16 * index).toString(16).padStart(4, "0");
      return line.endsWith(":") ? line : `        /*${at}*/                   ${line} ;`;
    })
    .join("\n");
}

const product = "HGMMA.64x8x16.F32.BF16 R24, R32, gdesc[UR4], RZ, !UPT, gsb0";
const fromShared = "HGMMA.64x8x16.F32.BF16 R40, gdesc[UR4], R40, gsb0";
const sparse = "HGMMA.SP.64x8x32.F32.BF16 R24, gdesc[UR4], R24, R36, 0x0, gsb0";
const over = "WARPGROUP.DEPBAR.LE gsb0, 0x0";
const oneLeft = "WARPGROUP.DEPBAR.LE gsb0, 0x1";

test.each([
  ["a factor is written", [product, "HADD2.BF16_V2 R33, R8, 1, 1", over]],
  ["a factor is loaded into", [product, "LDS.128 R28, [R30]", "LDS.64 R34, [R30]", over]],
  ["a sum is read", [product, "STG.E.64 desc[UR8][R2.64], R26", over]],
  ["a sum is the end of what is stored", [product, "STG.E.128 desc[UR8][R2.64], R22", over]],
  ["a sum is a factor", [product, "HGMMA.64x8x16.F32.BF16 R40, R24, gdesc[UR4], R40, gsb0", over]],
  ["a sum of another product is a factor", [fromShared, product.replace("R32", "R40"), over]],
  ["metadata are written", [sparse, "MOV R36, R2", over]],
  ["a younger one is left running", [fromShared, product, oneLeft, "MOV R32, R2", over]],
  ["the wait is in one arm", [product, "@!P0 BRA `(.L_x_0)", over, ".L_x_0:", "MOV R32, R2", over]],
  ["a round comes again", [".L_x_1:", "MOV R32, R2", product, "@P0 BRA `(.L_x_1)", over, "EXIT"]],
])("%s", (_, lines) => {
  expect(touchedInFlight(listing(...lines))).toHaveLength(1);
});

test.each([
  ["a factor is read", [product, "HADD2.BF16_V2 R8, R33, 1, 1", over]],
  ["a factor is written behind the wait", [product, over, "MOV R32, R2"]],
  ["sums go on", [product, product.replace("RZ, !UPT", "R24"), over, "MOV R24, R2"]],
  ["an older one is over", [product, fromShared, oneLeft, "MOV R32, R2", "MOV R24, R2", over]],
  ["both arms wait", [product, "@P0 BRA `(.L_x_0)", over, "EXIT", ".L_x_0:", over, "MOV R32, R2"]],
  [
    "names that only look alike",
    [product, "UMOV UR32, 0x1", "ISETP.GE.AND P0, PT, R8, R9, PT", over],
  ],
  [
    "halves take half as many",
    ["HGMMA.64x8x16.F16 R24, gdesc[UR4], R24, gsb0", "MOV R26, R2", over],
  ],
])("nothing: %s", (_, lines) => {
  expect(touchedInFlight(listing(...lines))).toEqual([]);
});
