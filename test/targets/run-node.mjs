// Runs one artifact through the JavaScript runtime and says what came of it, as gpu-run does on processors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: node run-node.mjs PACKAGE MODEL.ortc --host [--input NAME=FILE]... ACTION...
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, path, , ...words] = process.argv.slice(2);
const { EntryRole, Program, Role } = await import(pathToFileURL(`${folder}/index.mjs`));
const ARRAYS = { 1: Float32Array, 6: Int32Array, 7: BigInt64Array, 9: Uint8Array, 11: Float64Array };
const DTYPES = { 1: "F32", 6: "I32", 7: "I64", 9: "BOOL", 11: "F64" };

const program = await Program.open(readFileSync(path));
const session = program.createSession();
const valuesOf = (entryRole, role) =>
  program.entries.filter((entry) => entry.role === entryRole && entry.binding === 0)
    .flatMap((entry) => entry.values).filter((value) => value.role === role);
const inputs = new Map();
while (words[0] === "--input") {
  const [name, file] = words.splice(0, 2)[1].split("=");
  inputs.set(name, readFileSync(file));
}
const infos = new Map(program.entries.flatMap((entry) => entry.values)
  .filter((value) => value.role === Role.INPUT).map((value) => [value.name, value]));

let slice = 0;
function feed() {
  for (const [name, bytes] of inputs) {
    const { bytes: size, dtype } = infos.get(name), at = (slice % (bytes.length / size)) * size;
    session.write(name, new ARRAYS[dtype](Uint8Array.from(bytes.subarray(at, at + size)).buffer));
  }
  slice++;
}

/** A safetensors file of [name, dtype, shape, bytes]. */
function writeTensors(file, tensors) {
  const header = {};
  let offset = 0;
  for (const [name, dtype, shape, bytes] of tensors) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes.length] };
    offset += bytes.length;
  }
  const text = Buffer.from(JSON.stringify(header)), length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  writeFileSync(file, Buffer.concat([length, text, ...tensors.map((each) => each[3])]));
}
const describe = (value, array) => [value.name, DTYPES[value.dtype], value.shape, Buffer.from(array.buffer)];

const losses = [];
const actions = {
  load: (file) => session.load(readFileSync(file)),
  save: (file) => writeFileSync(file, session.save()),
  steps(count) {
    for (let i = 0; i < Number(count); i++) {
      feed();
      losses.push(session.trainStep());
    }
  },
  gradients(file) {
    feed();
    const loss = ["loss", "F64", [], Buffer.from(new Float64Array([session.gradientsStep()]).buffer)];
    writeTensors(file, [loss, ...valuesOf(EntryRole.GRADIENTS, Role.GRADIENT)
      .map((value) => describe(value, session.readGradient(value.name)))]);
  },
  predict(file) {
    feed();
    session.predictStep();
    writeTensors(file, valuesOf(EntryRole.PREDICT, Role.OUTPUT)
      .map((value) => describe(value, session.read(value.name, { bytes: value.bytes }))));
  },
};
while (words.length) {
  const action = words.shift();
  if (action === "reset") {
    session.reset();
    slice = 0;
  } else {
    actions[action](words.shift());
  }
}
// JSON as Python reads it, which knows numbers that are not finite.
console.log(`{"target": ${JSON.stringify(program.info.target)}, "losses": [${losses.join(", ")}]}`);
