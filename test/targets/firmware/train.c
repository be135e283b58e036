/* Trains the model that is linked in, as gpu-run does on processors with files, and says what came of it.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * command line: NAME [--input NAME=FILE]... ACTION...
 * Actions: load FILE, save FILE, reset, steps N, gradients FILE, predict FILE, as gpu-run has them. What gpu-run
 * writes as safetensors is here, for each array: words of 32 bits (bytes of the name, dtype, rank, dims), the name,
 * the size in 32 bits, and the bytes. Losses go to the console as 16 hexadecimal digits of a double. */
#include "model.h"
#include "runtime/freestanding/string.h"
#include "board.h"

extern uint8_t board_heap[], board_stack_top[];
enum { STACK_BYTES = 64 << 10 };

static uint8_t *heap;

static void *take(void *context, size_t bytes, size_t alignment) {
  (void)context;
  uint8_t *memory = (uint8_t *)(((uintptr_t)heap + alignment - 1) / alignment * alignment);
  if (bytes > (size_t)(board_stack_top - STACK_BYTES - memory))
    return NULL;
  heap = memory + bytes;
  return memory;
}

static ortc_program *program;
static ortc_session *session;
static uint32_t slice;

static void fail(const char *what, const char *text) {
  board_say(what);
  board_say(": ");
  board_say(text);
  board_say("\n");
  board_exit(1);
}

static void check(const char *what, ortc_status status) {
  if (status)
    fail(what, *ortc_session_message(session) ? ortc_session_message(session) : ortc_status_name(status));
}

static int32_t openFile(const char *path, int mode) {
  int32_t file = board_open(path, mode);
  if (file < 0)
    fail(path, "cannot be opened");
  return file;
}

/* ---- Inputs ---- */

enum { INPUTS = 8 };
static struct {
  const char *name;
  int32_t file;
  uint32_t bytes, slices;
  void *place;
} inputs[INPUTS];
static uint32_t inputCount;

static void addInput(char *word) {
  char *equals = strchr(word, '=');
  *equals = 0;
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  if (ortc_tensor_find(program, word, &info) || inputCount == INPUTS)
    fail(word, "is no input");
  inputs[inputCount].name = word;
  inputs[inputCount].file = openFile(equals + 1, BOARD_READ);
  inputs[inputCount].bytes = (uint32_t)info.bytes;
  inputs[inputCount].slices = board_length(inputs[inputCount].file) / (uint32_t)info.bytes;
  inputs[inputCount].place = take(NULL, (size_t)info.bytes, 8);
  if (!inputs[inputCount].place)
    fail(word, "no memory");
  inputCount++;
}

static void feed(void) {
  for (uint32_t i = 0; i < inputCount; i++) {
    board_seek(inputs[i].file, slice % inputs[i].slices * inputs[i].bytes);
    board_read(inputs[i].file, inputs[i].place, inputs[i].bytes);
    check(inputs[i].name, ortc_write(session, inputs[i].name, inputs[i].place, inputs[i].bytes));
  }
  slice++;
}

/* ---- Results ---- */

static void sayNumber(uint64_t bits) {
  char text[18];
  for (int i = 0; i < 16; i++)
    text[i] = "0123456789abcdef"[bits >> (60 - 4 * i) & 15];
  text[16] = '\n';
  text[17] = 0;
  board_say(text);
}

static void writeArray(int32_t file, const char *name, uint32_t dtype, uint32_t rank, const int64_t *dims,
                       const void *data, uint32_t bytes) {
  uint32_t words[3 + ORTC_MAX_RANK] = {(uint32_t)strlen(name), dtype, rank};
  for (uint32_t i = 0; i < rank; i++)
    words[3 + i] = (uint32_t)dims[i];
  board_write(file, words, 4 * (3 + rank));
  board_write(file, name, words[0]);
  board_write(file, &bytes, 4);
  board_write(file, data, bytes);
}

/* All values of a role that the entries of a role have. */
static void writeValues(int32_t file, uint32_t entryRole, uint8_t role) {
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  for (uint32_t i = 0; !ortc_entry_get(program, i, &entry); i++)
    for (uint32_t k = 0; entry.role == entryRole && k < entry.value_count; k++) {
      ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
      ortc_entry_value(program, i, k, &value);
      if (value.role != role)
        continue;
      uint8_t *before = heap, *data = take(NULL, (size_t)value.bytes, 8);
      if (!data)
        fail(value.name, "no memory");
      check(value.name, role == ORTC_ROLE_GRADIENT ? ortc_read_gradient(session, value.name, data, (size_t)value.bytes)
                                                   : ortc_read(session, value.name, data, (size_t)value.bytes));
      writeArray(file, value.name, value.dtype, value.rank, value.dims, data, (uint32_t)value.bytes);
      heap = before;
    }
}

static int32_t sink(void *context, const void *data, size_t bytes) {
  return !board_write(*(int32_t *)context, data, (uint32_t)bytes);
}

static void load(const char *path) {
  int32_t file = openFile(path, BOARD_READ);
  uint32_t bytes = board_length(file);
  uint8_t *before = heap, *data = take(NULL, bytes, 64);
  if (!data || !board_read(file, data, bytes))
    fail(path, "cannot be read");
  check("load", ortc_checkpoint_read(session, data, bytes, NULL));
  heap = before;
  board_close(file);
}

static void act(const char *action, const char *word) {
  double loss;
  if (!strcmp(action, "steps")) {
    uint32_t count = 0;
    while (*word)
      count = 10 * count + (uint32_t)(*word++ - '0');
    while (count--) {
      feed();
      check("step", ortc_train_step(session, &loss));
      uint64_t bits;
      memcpy(&bits, &loss, sizeof bits);
      sayNumber(bits);
    }
    return;
  }
  if (!strcmp(action, "load")) {
    load(word);
    return;
  }
  int32_t file = openFile(word, BOARD_CREATE);
  if (!strcmp(action, "save")) {
    check("save", ortc_checkpoint_write(session, sink, &file, NULL, 0));
  } else if (!strcmp(action, "gradients")) {
    feed();
    check("gradients", ortc_gradients_step(session, &loss));
    writeArray(file, "loss", 11, 0, NULL, &loss, sizeof loss);
    writeValues(file, ORTC_ENTRY_GRADIENTS, ORTC_ROLE_GRADIENT);
  } else {
    feed();
    check("predict", ortc_predict_step(session));
    writeValues(file, ORTC_ENTRY_PREDICT, ORTC_ROLE_OUTPUT);
  }
  board_close(file);
}

static char *nextWord(char **at) {
  char *word = *at;
  char *space = word ? strchr(word, ' ') : NULL;
  *at = space ? space + 1 : NULL;
  if (space)
    *space = 0;
  return word;
}

int main(void) {
  static char line[4096];
  static ortc_message message;
  board_command_line(line, sizeof line);
  heap = board_heap;
  ortc_host host = ORTC_INIT(ortc_host);
  host.allocate = take;
  if (ortc_program_open_static(model(), &host, &program, &message) ||
      ortc_session_create(program, NULL, &session, &message))
    fail("model", message.text);
  ortc_program_info info = ORTC_INIT(ortc_program_info);
  ortc_program_get_info(program, &info);
  board_say("target ");
  board_say(info.target_name);
  board_say("\n");
  char *at = line, *word;
  nextWord(&at);
  while ((word = nextWord(&at))) {
    if (!strcmp(word, "--input")) {
      addInput(nextWord(&at));
    } else if (!strcmp(word, "reset")) {
      ortc_session_reset(session);
      slice = 0;
    } else {
      act(word, nextWord(&at));
    }
  }
  return 0;
}
