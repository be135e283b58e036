// What test-browser.sh does in the page: draws three digits, labels each a few times, and looks. In node it prints the hash of
// the checkpoint that the same samples lead to, and numbers of an evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

const DIGITS = { 0: [[2, 1], [5, 1], [6, 3], [6, 4], [5, 6], [2, 6], [1, 4], [1, 3], [2, 1]], 1: [[4, 0], [4, 7]], 7: [[1, 1], [6, 1], [3, 7]] };
const ROUNDS = 4, STEPS = 10, BATCH = 64, PIXELS = 64;

const hash = async (bytes) => {
  const { subtle } = globalThis.crypto ?? (await import("node:crypto")).webcrypto;
  const digest = new Uint8Array(await subtle.digest("SHA-256", bytes));
  return [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
};

/** A learning rate and metrics of the artifact's first parameters. */
async function evaluate({ Metrics, Program, Schedule }, image) {
  const program = await Program.open(image), session = program.createSession();
  session.write("pixels", Float32Array.from({ length: BATCH * PIXELS }, (_, i) => (i * 7 % 17) / 16));
  session.write("label", BigInt64Array.from({ length: BATCH }, (_, i) => BigInt(i % 10)));
  session.evalStep();
  const metrics = await Metrics.create(program, ["accuracy", "perplexity"]);
  metrics.add(session);
  const schedule = await Schedule.create("cosine:warmup=3", { lr: 0.1, steps: 20 });
  return [schedule.rate(7), ...Object.values(metrics.compute())].join(" ");
}

/** Places between the corners of a stroke, in cells. */
function* trace(corners) {
  for (let i = 1; i < corners.length; i++)
    for (let part = 0; part <= 1; part += 0.125)
      yield corners[i - 1].map((from, axis) => from + part * (corners[i][axis] - from));
}

async function inPage() {
  const data = document.documentElement.dataset;
  try {
    await import("./digits.mjs");
    const pad = document.getElementById("pad"), box = pad.getBoundingClientRect();
    const draw = (digit) => {
      document.getElementById("clear").click();
      for (const [x, y] of trace(DIGITS[digit]))
        pad.dispatchEvent(new PointerEvent("pointermove", { buttons: 1, clientX: box.left + (x + 0.5) / 8 * box.width,
          clientY: box.top + (y + 0.5) / 8 * box.height }));
    };
    const buttons = [...document.querySelectorAll("#labels button")];
    for (let round = 0; round < ROUNDS; round++)
      for (const digit of Object.keys(DIGITS)) {
        draw(digit);
        buttons[digit].click();
      }
    const best = () => {
      const bars = [...document.querySelectorAll("#guess i")].map((bar) => parseFloat(bar.style.width));
      return bars.indexOf(Math.max(...bars));
    };
    data.guesses = Object.keys(DIGITS).map((digit) => (draw(digit), best())).join(" ");
    document.getElementById("save").addEventListener("click", (event) => event.preventDefault());
    document.getElementById("save").click();
    const image = await (await fetch("model.ortc")).arrayBuffer();
    data.evaluation = await evaluate(await import("./runtime/index.mjs"), image);
    data.checkpoint = await hash(await (await fetch(document.getElementById("save").href)).arrayBuffer());
  } catch (error) {
    data.error = String(error?.stack ?? error).replaceAll('"', "'");
  }
}

async function inNode(folder, path) {
  const { readFileSync } = await import("node:fs");
  const runtime = await import(new URL(`file://${folder}/index.mjs`)), { Program } = runtime;
  const session = (await Program.open(readFileSync(path))).createSession(), samples = [];
  for (let round = 0; round < ROUNDS; round++)
    for (const [digit, corners] of Object.entries(DIGITS)) {
      const image = new Float32Array(PIXELS);
      for (const [x, y] of trace(corners))
        for (let i = 0; i < PIXELS; i++)
          image[i] = Math.max(image[i], Math.min(1, Math.max(0, 1.4 - Math.hypot(i % 8 - x, Math.floor(i / 8) - y))));
      samples.push([image, digit]);
      const pixels = new Float32Array(BATCH * PIXELS), labels = new BigInt64Array(BATCH);
      for (let i = 0; i < BATCH; i++) {
        pixels.set(samples[i % samples.length][0], i * PIXELS);
        labels[i] = BigInt(samples[i % samples.length][1]);
      }
      session.write("pixels", pixels);
      session.write("label", labels);
      for (let i = 0; i < STEPS; i++)
        session.trainStep();
    }
  console.log(await hash(session.save()), await evaluate(runtime, readFileSync(path)));
}

if (typeof document === "undefined")
  await inNode(...process.argv.slice(2));
else
  await inPage();
