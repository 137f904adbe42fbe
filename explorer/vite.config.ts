/// <reference types="vitest/config" />
import { readFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import katex from "katex";
import { defineConfig, type Plugin } from "vite";

/** `import formula from "./x.tex"` gives MathML, made here, so that no formula renderer is shipped. */
function tex(): Plugin {
  return {
    name: "tex",
    load(id) {
      if (!id.endsWith(".tex")) return;
      const html = katex.renderToString(readFileSync(id, "utf8").trim(), { output: "mathml", displayMode: true });
      const math = html.replace(/^<span[^>]*>|<\/span>$/g, "").replace(/<annotation[\s\S]*<\/annotation>/, "");
      return { code: `export default ${JSON.stringify(math)}`, moduleType: "js" };
    },
  };
}

/** A page opened from file:// runs no module scripts: the bundle is a classic one, and the page says so. */
function classic(): Plugin {
  return {
    name: "classic",
    enforce: "post",
    transformIndexHtml: (html) =>
      html
        .replace(/<script type="module" crossorigin src="([^"]+)"><\/script>/, '<script defer src="$1"></script>')
        .replace(/<link rel="stylesheet" crossorigin /, '<link rel="stylesheet" '),
  };
}

export default defineConfig({
  base: "./",
  plugins: [tex(), svelte(), classic()],
  build: {
    outDir: "../src/gnomon/explorer/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: {
        format: "iife",
        entryFileNames: "explorer.js",
        assetFileNames: "explorer[extname]",
      },
    },
  },
  test: { include: ["src/**/*.test.ts"] },
});
