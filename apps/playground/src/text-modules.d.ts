/** Files that are bundled as their text. */
declare module "*?text" {
  const text: string;
  export default text;
}

/** The library's entry without what the build leaves for later: see `commonFolders` in build/bundle.mjs. */
declare module "*/src/index.ts?common" {
  const exports: { readonly [name: string]: unknown };
  export = exports;
}
