/** Lines of tuning files, the fastest choice of each; written by `scripts/ship-tuning.mjs`. */
export const measuredLines = `{"tilewright":"tuning","version":1}
`;
