/** How far results are from the exact ones, at most. */
export interface ErrorBound {
  /** Units in the last place of the exact result. */
  readonly ulp: number;
  readonly note: string;
}

export const mathBounds = { f32: {}, f64: {}, approximate: {} };
