// Draw digits, say which they are, and a network learns them in this page. Beside it lie model.ortc, with code for
// WebAssembly, and the package @ortc/runtime as the folder runtime.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import { Program } from "./runtime/index.mjs";

const BATCH = 64, PIXELS = 64, STEPS = 10;
const element = (id) => document.getElementById(id);
const program = await Program.open(await (await fetch("model.ortc")).arrayBuffer());
const session = program.createSession();
const samples = []; // [pixels, label]
const drawing = new Float32Array(PIXELS);

/** Trains on the newest samples, each as often as they go into a batch. */
function learn() {
  const recent = samples.slice(-BATCH), pixels = new Float32Array(BATCH * PIXELS), labels = new BigInt64Array(BATCH);
  for (let i = 0; i < BATCH; i++) {
    const [image, label] = recent[i % recent.length];
    pixels.set(image, i * PIXELS);
    labels[i] = BigInt(label);
  }
  session.write("pixels", pixels);
  session.write("label", labels);
  let loss;
  for (let i = 0; i < STEPS; i++)
    loss = session.trainStep();
  element("status").textContent = `${samples.length} digits, loss ${loss.toFixed(3)}`;
}

/** What the drawing is, by the probabilities of the ten digits. */
function guess() {
  const batch = new Float32Array(BATCH * PIXELS);
  batch.set(drawing);
  session.write("pixels", batch);
  session.predictStep();
  const scores = session.read("output").subarray(0, 10), largest = Math.max(...scores);
  const powers = [...scores].map((score) => Math.exp(score - largest)), sum = powers.reduce((a, b) => a + b);
  element("guess").replaceChildren(...powers.flatMap((power, digit) => {
    const [name, bar, share] = ["b", "i", "span"].map((tag) => document.createElement(tag));
    name.textContent = digit;
    bar.style.width = `${100 * power / sum}%`;
    share.textContent = `${(100 * power / sum).toFixed(1)} %`;
    return [name, bar, share];
  }));
  return powers.indexOf(Math.max(...powers));
}

function show() {
  [...element("pad").children].forEach((cell, i) => cell.style.background = `hsl(0 0% ${100 - 100 * drawing[i]}%)`);
}

/** Ink at a place of the pad, and less of it beside. */
function draw(event) {
  if (!event.buttons)
    return;
  const box = element("pad").getBoundingClientRect();
  const x = (event.clientX - box.left) / box.width * 8 - .5, y = (event.clientY - box.top) / box.height * 8 - .5;
  for (let i = 0; i < PIXELS; i++)
    drawing[i] = Math.max(drawing[i], Math.min(1, Math.max(0, 1.4 - Math.hypot(i % 8 - x, Math.floor(i / 8) - y))));
  show();
  guess();
}

element("pad").append(...Array.from({ length: PIXELS }, () => document.createElement("div")));
for (const type of ["pointerdown", "pointermove"])
  element("pad").addEventListener(type, draw);
for (let digit = 0; digit < 10; digit++) {
  const button = document.createElement("button");
  button.textContent = digit;
  button.onclick = () => {
    samples.push([drawing.slice(), digit]);
    learn();
    guess();
  };
  element("labels").append(button, " ");
}
element("clear").onclick = () => (drawing.fill(0), show(), guess());
element("forget").onclick = () => (samples.length = 0, session.reset(), guess(), element("status").textContent = "nothing learned");
element("save").onclick = () => element("save").href = URL.createObjectURL(new Blob([session.save()]));
element("status").textContent = `${program.info.target}, ${program.info.codeBytes} bytes of code; nothing learned`;
guess();
document.documentElement.dataset.ready = "yes";
