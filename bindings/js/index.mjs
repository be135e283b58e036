// The ortc runtime for JavaScript: opens an artifact with code for WebAssembly, and steps it. No logic of its own: every
// function is one of ortc.h, or of bindings/js/training.cpp. index.d.ts is its documentation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

const PAGE = 65536;
const OWN_PAGES = 16; // of a model's code (kWasmOwnBytes); the runtime's begin behind them
const RUNTIME_PAGES = 4; // data and stack of the runtime
const ABI = 1; // ORTC_ABI_VERSION
const PARTS = 8; // of large checkpoints, which are copied out of a program's memory one by one
const SECTION_CODE = 8, SECTION_MANIFEST = 11, WASM32 = 5; // enum ortc_section_kind, ortc_architecture
const FEATURES = 32; // offset in ortc_file_section
const SIZES = { message: 256, programInfo: 136, tensorInfo: 168, entryInfo: 48, options: 44, part: 16 };
const STATUS = ["ok", "argument", "format", "version", "target", "hash", "memory", "io", "not found", "shape", "range",
  "not finite", "state", "internal"];

export const Role = Object.freeze({ PARAMETER: 0, CONSTANT: 1, STATE: 2, SCALAR: 3, INPUT: 4, OUTPUT: 5, GRADIENT: 6, LOSS: 7 });
export const EntryRole = Object.freeze({ TRAIN: 0, EVAL: 1, PREDICT: 2, GRADIENTS: 3, UPDATE: 4, ACCUMULATE: 5 });

// By TensorProto.DataType. Types that JavaScript has no array of are bytes, or words that hold them.
const ARRAYS = { 1: Float32Array, 2: Uint8Array, 3: Int8Array, 4: Uint16Array, 5: Int16Array, 6: Int32Array,
  7: BigInt64Array, 9: Uint8Array, 10: Uint16Array, 11: Float64Array, 12: Uint32Array, 13: BigUint64Array, 16: Uint16Array };

const DTYPES = { 1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
  11: "float64", 12: "uint32", 13: "uint64", 16: "bfloat16" };
const arrayOf = (dtype) => ARRAYS[dtype] ?? Uint8Array;
/** Whether a tensor of this type takes that array: what is read, what pictures have, and float16 in engines that know it. */
const takes = (dtype, array) => array instanceof arrayOf(dtype) || dtype === 2 && array instanceof Uint8ClampedArray ||
  dtype === 10 && globalThis.Float16Array !== undefined && array instanceof globalThis.Float16Array;

export class OrtcError extends Error {
  constructor(status, text, options) {
    super(text || STATUS[status] || `status ${status}`, options);
    this.name = "OrtcError";
    this.status = STATUS[status] ?? "internal";
  }
}

/** What a call gives; what the engine throws where memory ends, or a module fails, becomes an error of this package. */
function guard(call) {
  try {
    return call();
  } catch (error) {
    if (error instanceof RangeError)
      throw new OrtcError(6, `out of memory: ${error.message}`, { cause: error });
    if (error instanceof WebAssembly.RuntimeError)
      throw new OrtcError(13, error.message, { cause: error });
    throw error;
  }
}

/** The last code for WebAssembly in an artifact that needs no features, as [offset of its module, bytes of it]; null without any. */
function findModule(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = "ORTC\r\n\x1a\n", header = 120, row = 80; // sizeof(ortc_file_header), sizeof(ortc_file_section)
  if (bytes.byteLength < header || [...magic].some((each, i) => bytes[i] !== each.charCodeAt(0)) ||
      view.getUint32(12, true) !== header || view.getUint32(28, true) !== row)
    return null; // the runtime says what is wrong
  const count = Math.min(view.getUint32(24, true), Math.floor((bytes.byteLength - header) / row));
  for (let i = count; i-- > 0;) {
    const at = header + i * row;
    const offset = Number(view.getBigUint64(at + 8, true)), size = Number(view.getBigUint64(at + 16, true));
    const isCode = view.getUint32(at, true) === SECTION_CODE && view.getUint32(at + 28, true) === WASM32 &&
      !view.getBigUint64(at + FEATURES, true);
    if (!isCode || offset + size > bytes.byteLength || size < 16)
      continue;
    const head = Math.ceil((16 + view.getUint32(offset + 8, true) * view.getUint32(offset + 12, true)) / 64) * 64;
    return head < size ? [offset + head, size - head] : null;
  }
  return null;
}

/** A module, of its bytes or of what brings them. */
async function compile(source) {
  if (source instanceof WebAssembly.Module)
    return source;
  try {
    if (typeof Response === "undefined" || !(source instanceof Response))
      return await WebAssembly.compile(source);
    if (!source.ok)
      throw new OrtcError(7, `${source.url}: HTTP status ${source.status}`);
    // Servers that call it something else are served, too.
    const isKnown = source.headers.get("content-type")?.startsWith("application/wasm");
    return isKnown ? await WebAssembly.compileStreaming(source) : await WebAssembly.compile(await source.arrayBuffer());
  } catch (error) {
    throw error instanceof WebAssembly.CompileError ? new OrtcError(2, error.message) : error;
  }
}

/** One runtime with a memory of its own, for one artifact. */
class Machine {
  free = []; // regions
  dtypes = new Map(); // by name, of the tensors that were written

  adopt(exports) {
    this.table = exports.__indirect_function_table;
    this.c = Object.fromEntries(Object.entries(exports).map(([name, call]) => [name, (...given) => guard(() => call(...given))]));
  }

  /** A module that has runtime and model: its memory is its own. */
  static async startWhole(module) {
    if (!WebAssembly.Module.exports(module).some((each) => each.name === "ortc_js_open"))
      throw new OrtcError(2, "not a module of ortc train --emit wasm");
    const machine = new Machine();
    const { exports } = await WebAssembly.instantiate(module);
    machine.adopt(exports);
    machine.memory = exports.memory;
    const abi = machine.c.ortc_abi_version();
    if (abi !== ABI)
      throw new OrtcError(3, `the module's runtime has ABI ${abi}, and this package knows ${ABI}`);
    return machine;
  }

  static async start(runtime, artifact) {
    const machine = new Machine();
    machine.memory = guard(() => new WebAssembly.Memory({ initial: OWN_PAGES + RUNTIME_PAGES }));
    const found = findModule(artifact);
    // Compiled here, where it need not block; the runtime asks for it once it has checked the hash of these bytes.
    if (found) {
      const bytes = artifact.slice(found[0], found[0] + found[1]);
      machine.compiled = { bytes, module: await WebAssembly.compile(bytes).catch(() => null) };
    }
    const imports = {
      env: { memory: machine.memory },
      ortc: { load: (...given) => machine.load(...given) },
    };
    machine.adopt((await WebAssembly.instantiate(runtime, imports)).exports);
    return machine;
  }

  get view() { return new DataView(this.memory.buffer); }
  bytes(at, size) { return new Uint8Array(this.memory.buffer, at, size); }

  /** Whole pages at the end of the memory. */
  region(size) {
    const pages = Math.ceil(size / PAGE) || 1;
    return { at: guard(() => this.memory.grow(pages)) * PAGE, size: pages * PAGE };
  }

  load(at, size, functions, count) {
    at >>>= 0, functions >>>= 0;
    const given = this.bytes(at, size), own = this.compiled;
    if (!own?.module || own.bytes.length !== size || own.bytes.some((byte, i) => byte !== given[i]))
      return 0;
    try {
      const { exports } = new WebAssembly.Instance(own.module, { env: { memory: this.memory } });
      const first = this.table.grow(count);
      for (let i = 0; i < count; i++) {
        this.table.set(first + i, exports[i]);
        this.view.setUint32(functions + 4 * i, first + i, true);
      }
      return 1;
    } catch {
      return 0;
    }
  }

  /** Calls `use` with the address of so many zeroed bytes, which are free again afterwards. */
  with(size, use) {
    // The smallest that is free and large enough: steps find what the first one has left.
    const index = this.free.findIndex((each) => each.size >= size);
    const region = index < 0 ? this.region(size) : this.free.splice(index, 1)[0];
    this.bytes(region.at, size).fill(0);
    try {
      return use(region.at);
    } finally {
      this.free.push(region);
      this.free.sort((a, b) => a.size - b.size);
    }
  }

  withText(text, use) {
    const encoded = new TextEncoder().encode(text);
    if (encoded.includes(0))
      throw new OrtcError(1, "a name has the character 0 in it");
    return this.with(encoded.length + 1, (at) => (this.bytes(at, encoded.length).set(encoded), use(at)));
  }

  text(at) {
    at >>>= 0;
    if (!at)
      return null;
    const all = new Uint8Array(this.memory.buffer);
    return new TextDecoder().decode(all.slice(at, all.indexOf(0, at)));
  }
}

/** A module of this package: what is given for it, or the file at `url`. */
async function readModule(given, url) {
  if (given)
    return compile(given);
  if (url.protocol === "file:")
    return WebAssembly.compile(await (await import("node:fs/promises")).readFile(url));
  return compile(await fetch(url));
}

export class Program {
  #machine;
  #handle;

  static async open(artifact, { runtime } = {}) {
    const image = artifact instanceof Uint8Array ? artifact : new Uint8Array(artifact);
    const machine = await Machine.start(await readModule(runtime, new URL("./ortc.wasm", import.meta.url)), image);
    const { at } = machine.region(image.length);
    machine.bytes(at, image.length).set(image);
    const program = Program.#make(machine, (...out) => machine.c.ortc_program_open_memory(at, image.length, 0, ...out));
    machine.compiled = null;
    return program;
  }

  static async openModule(source) {
    const machine = await Machine.startWhole(await compile(await source));
    return Program.#make(machine, machine.c.ortc_js_open);
  }

  static #make(machine, open) {
    const program = new Program();
    program.#machine = machine;
    program.#handle = machine.with(4 + SIZES.message, (out) => {
      const status = open(out, out + 4);
      if (status)
        throw new OrtcError(status, machine.text(out + 4));
      return machine.view.getUint32(out, true);
    });
    return program;
  }

  get info() {
    const m = this.#machine;
    return m.with(SIZES.programInfo, (at) => {
      m.view.setUint32(at, SIZES.programInfo, true);
      m.c.ortc_program_get_info(this.#handle, at);
      const u32 = (offset) => m.view.getUint32(at + offset, true), u64 = (offset) => Number(m.view.getBigUint64(at + offset, true));
      const hex = (offset) => [...m.bytes(at + offset, 32)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
      return { tensors: u32(4), bindings: u32(8), entries: u32(12), target: m.text(u32(32)), codeBytes: u64(40),
        constantBytes: u64(48), persistentBytes: u64(56), ioBytes: u64(64), digest: hex(72), model: hex(104) };
    });
  }

  get manifest() {
    const m = this.#machine;
    return m.with(16, (at) => {
      const status = m.c.ortc_program_section(this.#handle, SECTION_MANIFEST, at, at + 8);
      if (status)
        throw new OrtcError(status, "the artifact has no manifest, as modules of ortc train --emit wasm have none, or a damaged one");
      const bytes = m.bytes(m.view.getUint32(at, true), Number(m.view.getBigUint64(at + 8, true)));
      return new TextDecoder().decode(bytes.slice());
    });
  }

  #describe(call) {
    const m = this.#machine;
    return m.with(SIZES.tensorInfo, (at) => {
      m.view.setUint32(at, SIZES.tensorInfo, true);
      if (call(at))
        return null;
      const { view } = m, rank = view.getUint8(at + 14);
      const shape = Array.from({ length: rank }, (_, i) => Number(view.getBigInt64(at + 40 + 8 * i, true)));
      return { index: view.getUint32(at + 4, true), name: m.text(view.getUint32(at + 8, true)), role: view.getUint8(at + 12),
        dtype: view.getUint8(at + 13), shape, bytes: Number(view.getBigUint64(at + 32, true)) };
    });
  }

  /** All tensors, in the order of the artifact's table. */
  get tensors() {
    return Array.from({ length: this.info.tensors }, (_, i) => this.#describe((at) => this.#machine.c.ortc_tensor_get(this.#handle, i, at)));
  }

  tensor(name) {
    return this.#machine.withText(name, (text) => this.#describe((at) => this.#machine.c.ortc_tensor_find(this.#handle, text, at)));
  }

  /** All entries with their values: which inputs, outputs and gradients a step has, in which shape. */
  get entries() {
    const m = this.#machine;
    return Array.from({ length: this.info.entries }, (_, entry) => m.with(SIZES.entryInfo, (at) => {
      m.view.setUint32(at, SIZES.entryInfo, true);
      m.c.ortc_entry_get(this.#handle, entry, at);
      const count = m.view.getUint32(at + 16, true);
      const [role, binding, name] = [4, 8, 40].map((offset) => m.view.getUint32(at + offset, true));
      const values = Array.from({ length: count }, (_, n) => this.#describe((out) => m.c.ortc_entry_value(this.#handle, entry, n, out)));
      return { role, binding, name: m.text(name), values };
    }));
  }

  bindingIndex(name) {
    const index = this.#machine.withText(name, (at) => this.#machine.c.ortc_binding_find(this.#handle, at)) >>> 0;
    if (index === 0xffffffff)
      throw new OrtcError(8, `no binding '${name}'`);
    return index;
  }

  createSession({ stopOnNotFinite = false } = {}) {
    const m = this.#machine;
    return m.with(SIZES.options + 4 + SIZES.message, (at) => {
      m.view.setUint32(at, SIZES.options, true);
      m.view.setUint32(at + 4, stopOnNotFinite ? 1 : 0, true);
      const out = at + SIZES.options, status = m.c.ortc_session_create(this.#handle, at, out, out + 4);
      if (status)
        throw new OrtcError(status, m.text(out + 4));
      return new Session(m, this, m.view.getUint32(out, true));
    });
  }
}

export class Session {
  #machine;
  #program;
  #open; // 0 once it is closed
  #binding = 0;

  /** Sessions come from Program.createSession. */
  constructor(machine, program, handle) {
    this.#machine = machine;
    this.#program = program;
    this.#open = handle;
  }

  get #handle() {
    if (!this.#open)
      throw new OrtcError(12, "the session is closed");
    return this.#open;
  }

  #check(status) {
    if (status)
      throw new OrtcError(status, this.#machine.text(this.#machine.c.ortc_session_message(this.#handle)));
  }

  #access(call, name, bytes) {
    const m = this.#machine;
    this.#handle; // before memory is taken
    return m.withText(name, (text) => m.with(bytes.length, (at) => {
      m.bytes(at, bytes.length).set(bytes);
      this.#check(m.c[call](this.#handle, text, at, bytes.length));
      bytes.set(m.bytes(at, bytes.length));
    }));
  }

  #read(call, name, info) {
    if (!info)
      throw new OrtcError(8, `no '${name}'`);
    const bytes = guard(() => new Uint8Array(info.bytes));
    this.#access(call, name, bytes);
    return new (arrayOf(info.dtype))(bytes.buffer);
  }

  /** Bytes of memory that the program takes now, code and artifact included. */
  get memoryBytes() { return this.#machine.memory.buffer.byteLength; }

  /** The index of the binding in use. */
  get binding() { return this.#binding; }
  useBinding(name) {
    const index = this.#program.bindingIndex(name);
    this.#check(this.#machine.c.ortc_session_use_binding(this.#handle, index));
    this.#binding = index;
  }
  reset() { this.#check(this.#machine.c.ortc_session_reset(this.#handle)); }

  write(name, values) { this.#access("ortc_write", name, this.#bytesOf(name, values, () => this.#program.tensor(name))); }
  /** `bytes`: of the binding in use, where an input or output has another shape there than in the first one. */
  read(name, { bytes } = {}) {
    const info = this.#program.tensor(name);
    return this.#read("ortc_read", name, info && { ...info, bytes: bytes ?? info.bytes });
  }
  readGradient(parameter) {
    return this.#read("ortc_read_gradient", parameter, this.#gradient(parameter));
  }
  writeGradient(parameter, values) {
    this.#access("ortc_write_gradient", parameter, this.#bytesOf(`gradient of ${parameter}`, values, () => this.#gradient(parameter)));
  }
  #gradient(parameter) {
    const gradient = this.#program.tensors.find((each) => each.role === Role.GRADIENT && each.name === parameter);
    return gradient ?? this.#program.tensor(parameter);
  }

  /** A copy of the bytes of an array, which must be of the tensor's type. `find` gives the tensor, or null. */
  #bytesOf(name, values, find) {
    const { dtypes } = this.#machine;
    const dtype = dtypes.get(name) ?? find()?.dtype; // the runtime says what is not there
    if (dtype !== undefined && !takes(dtype, values)) {
      const given = values?.constructor?.name ?? String(values);
      throw new OrtcError(9, `'${name}' is ${DTYPES[dtype] ?? `of type ${dtype}`} and takes ${arrayOf(dtype).name}, not ${given}`);
    }
    if (dtype !== undefined)
      dtypes.set(name, dtype);
    return ArrayBuffer.isView(values) ? new Uint8Array(values.buffer, values.byteOffset, values.byteLength).slice() : new Uint8Array(0);
  }

  setScalar(name, value) {
    this.#machine.withText(name, (at) => this.#check(this.#machine.c.ortc_set_scalar(this.#handle, at, value)));
  }
  getScalar(name) {
    const m = this.#machine;
    return m.withText(name, (text) => m.with(8, (at) => {
      this.#check(m.c.ortc_get_scalar(this.#handle, text, at));
      return m.view.getFloat64(at, true);
    }));
  }

  #step(call) {
    const m = this.#machine;
    return m.with(8, (at) => {
      this.#check(m.c[call](this.#handle, at));
      return m.view.getFloat64(at, true);
    });
  }
  trainStep() { return this.#step("ortc_train_step"); }
  accumulateStep() { return this.#step("ortc_accumulate_step"); }
  evalStep() { return this.#step("ortc_eval_step"); }
  gradientsStep() { return this.#step("ortc_gradients_step"); }
  predictStep() { this.#check(this.#machine.c.ortc_predict_step(this.#handle)); }
  updateStep() { this.#check(this.#machine.c.ortc_update_step(this.#handle)); }

  /** A checkpoint: the bytes of a safetensors file. */
  save() {
    const m = this.#machine;
    return m.with(SIZES.part, (out) => {
      const write = (...part) => {
        part.forEach((value, i) => m.view.setUint32(out + 4 * i, value, true));
        this.#check(m.c.ortc_js_checkpoint_write(this.#handle, out));
        return m.view.getUint32(out + 12, true);
      };
      const size = write(0, 0, 0), file = new Uint8Array(size), room = Math.max(PAGE, Math.ceil(size / PARTS));
      m.with(room, (at) => {
        for (let first = 0; first < size; first += room) {
          write(at, room, first);
          file.set(m.bytes(at, Math.min(room, size - first)), first);
        }
      });
      return file;
    });
  }
  load(checkpoint) {
    const m = this.#machine, bytes = checkpoint instanceof Uint8Array ? checkpoint : new Uint8Array(checkpoint);
    m.with(bytes.length, (at) => {
      m.bytes(at, bytes.length).set(bytes);
      this.#check(m.c.ortc_checkpoint_read(this.#handle, at, bytes.length, 0));
    });
  }

  close() {
    this.#machine.c.ortc_session_destroy(this.#open);
    this.#open = 0;
  }
}

/** An instance of training.wasm, which has the schedules and metrics of ortc run. Each object has one: it goes with it. */
class Engine {
  static async start(given) {
    const engine = new Engine();
    const { exports } = await WebAssembly.instantiate(await readModule(given, new URL("./training.wasm", import.meta.url)));
    engine.memory = exports.memory;
    engine.c = Object.fromEntries(Object.entries(exports).map(([name, call]) => [name, (...given) => guard(() => call(...given))]));
    engine.c._initialize();
    engine.host = engine.c.create();
    return engine;
  }

  get view() { return new DataView(this.memory.buffer); }
  bytes(at, size) { return new Uint8Array(this.memory.buffer, at >>> 0, size); }
  get text() { return new TextDecoder().decode(this.bytes(this.c.text(this.host), this.c.textBytes(this.host))); }

  /** Calls a function that takes the text that stands in `text`, or that gives one. */
  call(name, ...given) {
    const status = this.c[name](this.host, ...given);
    if (status)
      throw new OrtcError(status, this.text);
  }
  send(text, name, ...given) {
    const encoded = new TextEncoder().encode(text);
    const at = this.c.room(this.host, encoded.length);
    this.bytes(at, encoded.length).set(encoded);
    this.call(name, ...given);
  }
  /** Calls `use` with the address of so many bytes, and then gives them back. */
  with(size, use) {
    const at = this.c.malloc(size);
    try {
      return use(at);
    } finally {
      this.c.free(at);
    }
  }
}

export class Schedule {
  #engine;

  static async create(text, { lr, steps = 0, training } = {}) {
    const schedule = new Schedule();
    schedule.#engine = await Engine.start(training);
    schedule.#engine.send(text, "parseRates", lr, steps);
    return schedule;
  }

  rate(step) { return this.#engine.c.getRate(this.#engine.host, step); }
  follow(value, goal = "min") {
    if (goal !== "min" && goal !== "max")
      throw new OrtcError(1, `a goal is 'min' or 'max', not '${goal}'`);
    this.#engine.c.follow(this.#engine.host, value, goal === "max" ? 1 : 0);
  }
  get state() {
    this.#engine.call("formatState");
    return this.#engine.text;
  }
  restore(state) { this.#engine.send(state, "parseState"); }
}

export class Metrics {
  #engine;
  #names;
  #tensors; // that every slice needs

  static async create(program, names, { manifest = program.manifest, training } = {}) {
    const metrics = new Metrics(), engine = await Engine.start(training);
    metrics.#engine = engine;
    metrics.#names = [...new Set(names)];
    engine.send(manifest, "openManifest");
    for (const { role, binding, values } of program.entries)
      for (const value of role === EntryRole.EVAL || role === EntryRole.PREDICT ? values : [])
        if (value.role === Role.INPUT || value.role === Role.OUTPUT)
          engine.with(8 * value.shape.length, (dims) => {
            value.shape.forEach((size, i) => engine.view.setFloat64(dims + 8 * i, size, true));
            engine.send(value.name, "addValue", binding, value.role === Role.INPUT ? 1 : 0, value.dtype, value.shape.length, dims);
          });
    for (const name of metrics.#names)
      engine.send(name, "addMetric");
    metrics.#tensors = Array.from({ length: engine.c.countTensors(engine.host) }, (_, i) => {
      engine.c.nameTensor(engine.host, i);
      return engine.text;
    });
    return metrics;
  }

  begin() { this.#engine.call("begin"); }

  add(session, { rows = NaN } = {}) {
    const engine = this.#engine;
    this.#tensors.forEach((name, i) => engine.with(8, (out) => {
      engine.call("getPlace", session.binding, i, out, out + 4);
      const bytes = engine.view.getUint32(out + 4, true), values = session.read(name, { bytes });
      engine.bytes(engine.view.getUint32(out, true), bytes).set(new Uint8Array(values.buffer));
    }));
    engine.call("addSlice", session.binding, rows);
  }

  compute() {
    const engine = this.#engine;
    return engine.with(8 * this.#names.length, (out) => {
      engine.c.compute(engine.host, out);
      return Object.fromEntries(this.#names.map((name, i) => [name, engine.view.getFloat64(out + 8 * i, true)]));
    });
  }
}
