/**
 * Lint rules. Types are checked by the compiler and the layout of the text by Prettier; what remains
 * here is what neither sees: escape hatches from the type system, promises nobody awaits, switches
 * that forget a case, files and functions that grow too long to read.
 */
import tseslint from "typescript-eslint";

const hostGlobals = ["process", "Buffer", "global", "require", "__dirname", "__filename"];

export default tseslint.config(
  { ignores: ["dist/", "coverage/", "test/.snippets/"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-non-null-assertion": "error",
      "@typescript-eslint/consistent-type-imports": [
        "error",
        { fixStyle: "separate-type-imports" },
      ],
      "@typescript-eslint/consistent-type-exports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: false, requireDefaultForNonUnion: true },
      ],
      "@typescript-eslint/prefer-readonly": "error",
      "@typescript-eslint/ban-ts-comment": "error",
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowBoolean: true, allowNever: true },
      ],
      // An implementation of an asynchronous interface need not wait for anything itself.
      "@typescript-eslint/require-await": "off",
      // The compiler reports these already (noUnusedLocals, noUnusedParameters).
      "@typescript-eslint/no-unused-vars": "off",
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      "no-else-return": "error",
      "no-restricted-syntax": [
        "error",
        { selector: "TSEnumDeclaration", message: "Use a union of literals." },
        { selector: "TSModuleDeclaration[kind='namespace']", message: "Use a module." },
        { selector: "ExportDefaultDeclaration", message: "Export by name." },
      ],
      "id-denylist": ["error", "idx", "buf", "ctx", "acc", "tmp", "arr", "cb"],
      complexity: ["error", 20],
      "max-depth": ["error", 5],
      "max-params": ["error", 8],
      "max-lines": ["error", 600],
      "max-lines-per-function": ["error", { max: 80, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    files: ["src/**/*.ts"],
    ignores: ["src/cli/**"],
    rules: {
      "no-console": "error",
      "no-restricted-globals": [
        "error",
        ...hostGlobals.map((name) => ({ name, message: "The library also runs in a browser." })),
      ],
    },
  },
  {
    // A test file is one long list; a suite's callback is not a function anybody reads as one.
    files: ["**/*.test.ts"],
    rules: {
      "max-lines-per-function": "off",
      "@typescript-eslint/unbound-method": "off",
    },
  },
  { files: ["vitest.config.ts"], rules: { "no-restricted-syntax": "off" } },
);
