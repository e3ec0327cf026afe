/** How scales that are powers of two follow from the largest number of a block: `docs/scaled-formats.md` has what each is known as. */
export const scaleRoundings = ["roundUp", "floor", "ceil", "even"] as const;
/** How scales that are powers of two are rounded. */
export type ScaleRounding = (typeof scaleRoundings)[number];
