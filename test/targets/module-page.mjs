// Three steps of a model that is one module with the runtime, in a page (a loss in the attribute `data-loss`) and in node (printed).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: node module-page.mjs PACKAGE MODEL.wasm
const isPage = typeof document !== "undefined";

async function train(Program, source) {
  const session = (await Program.openModule(source)).createSession();
  session.write("pixels", Float32Array.from({ length: 64 * 64 }, (_, i) => (i * 7 % 17) / 16));
  session.write("label", BigInt64Array.from({ length: 64 }, (_, i) => BigInt(i % 10)));
  return [1, 2, 3].map(() => session.trainStep()).join(" ");
}

if (isPage) {
  const data = document.documentElement.dataset;
  try {
    const { Program } = await import("./runtime/index.mjs");
    data.loss = await train(Program, fetch("model.wasm"));
  } catch (error) {
    data.error = String(error?.stack ?? error).replaceAll('"', "'");
  }
} else {
  const { readFileSync } = await import("node:fs");
  const { Program } = await import(new URL(`file://${process.argv[2]}/index.mjs`));
  console.log(await train(Program, readFileSync(process.argv[3])));
}
