/**
 * Reading the text of register layouts. What `parseLayout` accepts is a spelling; the layout it gives
 * prints as the canonical one.
 *
 *   layout := "splat" | "flat(" bits ")" | "(" bits { "|" bits } ")"
 *   bits   := { ("R" | "L" | "W") number }
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { optionText } from "../../support/options.ts";
import { laneBit, laneBits, registerBit, warpBit, warpBits } from "./index-bits.ts";
import type { Bit } from "./index-bits.ts";
import { axesLayout, flatLayout, splat } from "./register-layout.ts";
import type { RegisterLayout } from "./register-layout.ts";

const form = /^\s*(flat)?\s*\(([^()]*)\)\s*$/;

/** Reads a layout of registers from its text, such as `"(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"`. */
export function parseLayout(text: string): RegisterLayout {
  if (typeof text !== "string")
    throw textError(optionText(text), "the text of a layout", optionText(text));
  if (text.trim() === "splat") return splat;
  const match = form.exec(text);
  if (match === null) throw textError(text, "splat, flat(…) or (… | …)", text);
  const axes = (match[2] ?? "").split("|").map((axis) => parseBits(axis, text));
  if (match[1] === undefined) return axesLayout(axes);
  const [bits, ...others] = axes;
  if (bits === undefined || others.length > 0)
    throw textError(text, "one list of bits in flat(…)", `${axes.length} lists`);
  return flatLayout(bits);
}

const known = new Map<string, RegisterLayout>();

/** The layout of a text that types of a placed kernel have; each is read once. */
export function knownLayout(text: string): RegisterLayout {
  const layout = known.get(text) ?? parseLayout(text);
  known.set(text, layout);
  return layout;
}

const makers: { readonly [letter: string]: { make: (index: number) => Bit; limit: number } } = {
  R: { make: registerBit, limit: 31 },
  L: { make: laneBit, limit: laneBits },
  W: { make: warpBit, limit: warpBits },
};

function parseBits(axis: string, text: string): readonly Bit[] {
  const words = axis.split(/\s+/).filter((word) => word !== "");
  return words.map((word) => {
    const [, letter, digits] = /^([RLW])(\d+)$/.exec(word) ?? [];
    const maker = letter === undefined ? undefined : makers[letter];
    if (maker === undefined) throw textError(text, "bits such as R0, L4, W1", word);
    const index = Number(digits);
    if (index >= maker.limit) {
      const message = `bit ${word} does not exist in layout ${text.trim()}`;
      throw new TilewrightError({
        ...{ code: "TW6002", message },
        ...{ expected: `${letter}0 to ${letter}${maker.limit - 1}`, found: word },
      });
    }
    return maker.make(index);
  });
}

function textError(text: string, expected: string, found: string): TilewrightError {
  const message = `"${text}" is not the text of a register layout`;
  return new TilewrightError({ code: "TW6001", message, expected, found });
}
