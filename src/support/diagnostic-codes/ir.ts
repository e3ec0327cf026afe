/**
 * Codes of the tile IR: TW2xxx. The second and third digits say which rules:
 * 200–201 values, 202–203 tiles, 204–205 memory, 206–207 asynchronous operations, 208 synchronization,
 * 209–210 control, 22x the verifier, 230 tensor memory. IR text has its own file.
 */
import { asynchronousCodes } from "./ir/asynchronous.ts";
import { controlCodes } from "./ir/control.ts";
import { memoryCodes } from "./ir/memory.ts";
import { tensorMemoryCodes } from "./ir/tensor-memory.ts";
import { tileCodes } from "./ir/tiles.ts";
import { valueCodes } from "./ir/values.ts";
import { verifierCodes } from "./ir/verifier.ts";

export const irCodes = Object.freeze({
  ...valueCodes,
  ...tileCodes,
  ...memoryCodes,
  ...asynchronousCodes,
  ...tensorMemoryCodes,
  ...controlCodes,
  ...verifierCodes,
});
