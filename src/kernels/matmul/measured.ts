/** Lines of tuning files, the fastest choice of each. */
export const measuredLines = `{"tilewright":"tuning","version":1}
`;
