/** Files that are bundled as their text. */
declare module "*?text" {
  const text: string;
  export default text;
}
