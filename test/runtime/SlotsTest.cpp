// Checkpoints in slots, on flash that is simulated with its rules: power cuts at every operation, wear, damage.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/slots.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "runtime/slots/slot.h"
#include "support/Random.h"
#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

/// What an operation has done of its work when the power fails.
enum class Cut { Before, Some, Part, Behind };
constexpr Cut kCuts[] = {Cut::Before, Cut::Some, Cut::Part, Cut::Behind};

/// NOR flash. A breach of its rules fails the test; so does what lies outside of the two slots.
class Flash {
public:
  Flash(uint32_t erase, uint32_t unit, uint32_t slotBytes) {
    slots.size = sizeof slots;
    slots.erase_bytes = erase;
    slots.program_bytes = unit;
    slots.slot_bytes = slotBytes;
    slots.offset[0] = 3 * erase;
    slots.offset[1] = slots.offset[0] + slotBytes + 2 * erase;
    slots.context = this;
    slots.read = [](void *c, uint32_t at, void *to, uint32_t n) {
      return static_cast<Flash *>(c)->read(at, to, n);
    };
    slots.program = [](void *c, uint32_t at, const void *from) {
      return static_cast<Flash *>(c)->program(at, static_cast<const uint8_t *>(from));
    };
    slots.erase = [](void *c, uint32_t at) { return static_cast<Flash *>(c)->erase(at); };
    bytes.assign(slots.offset[1] + slotBytes + erase, 0xff);
    // As it is delivered: anything, and nothing is blank.
    Random random(7);
    for (uint32_t i = 0; i < bytes.size(); i++)
      bytes[i] = inSlots(i, 1) ? uint8_t(random.next()) : 0x5a;
    isProgrammed.assign(bytes.size() / unit, true);
    isTorn.assign(bytes.size() / unit, false);
  }
  /// Where the processor sees it.
  void map() {
    slots.mapped = bytes.data();
    slots.read = nullptr;
  }
  /// The power fails at the operation of this number from now on, and comes back with restart().
  void cutAt(int operation, Cut how, uint64_t seed) {
    left = operation;
    cut = how;
    random = Random(seed);
  }
  void restart() {
    left = -1;
    isDead = false;
  }
  int eraseCount(int slot) const {
    auto found = erases.find(slots.offset[slot]);
    return found == erases.end() ? 0 : found->second;
  }

  ortc_slots slots{};
  Bytes bytes;
  int operations = 0;
  int failErase = -1, failProgram = -1, ignoreProgram = -1; ///< the operation of this number
  bool isDead = false;
  bool hasErrorCorrection = false; ///< units that the power has failed in cannot be read

private:
  bool inSlots(uint32_t at, uint32_t count) const {
    for (uint32_t offset : slots.offset)
      if (at >= offset && at + count <= offset + slots.slot_bytes)
        return true;
    return false;
  }
  int32_t read(uint32_t at, void *to, uint32_t count) {
    EXPECT_TRUE(inSlots(at, count)) << at;
    if (isDead)
      return 1;
    std::memcpy(to, bytes.data() + at, count);
    uint32_t unit = slots.program_bytes, end = (at + count + unit - 1) / unit;
    return std::find(isTorn.begin() + at / unit, isTorn.begin() + end, true) != isTorn.begin() + end;
  }
  bool isCut() { return isDead = left >= 0 && left-- == 0; }

  int32_t program(uint32_t at, const uint8_t *from) {
    uint32_t unit = slots.program_bytes;
    if (isDead)
      return 1;
    EXPECT_TRUE(inSlots(at, unit) && at % unit == 0) << at;
    EXPECT_FALSE(isProgrammed[at / unit]) << at << " is programmed twice";
    isProgrammed[at / unit] = true;
    int number = operations++;
    if (number == failProgram)
      return 1;
    bool cutNow = isCut();
    if (number == ignoreProgram || (cutNow && cut == Cut::Before))
      return cutNow;
    uint32_t whole = cutNow && cut == Cut::Part ? uint32_t(random.below(unit)) : unit;
    for (uint32_t i = 0; i < unit; i++) {
      uint8_t kept = i >= whole ? 0xff : cutNow && cut == Cut::Some ? uint8_t(random.next()) : 0;
      bytes[at + i] &= from[i] | kept; // bits are only cleared
    }
    isTorn[at / unit] = hasErrorCorrection && cutNow && cut != Cut::Behind;
    return cutNow;
  }
  int32_t erase(uint32_t at) {
    if (isDead)
      return 1;
    EXPECT_TRUE(inSlots(at, slots.erase_bytes) && at % slots.erase_bytes == 0) << at;
    if (operations++ == failErase)
      return 1;
    bool cutNow = isCut();
    if (cutNow && cut == Cut::Before)
      return 1;
    erases[at]++;
    uint32_t whole =
        cutNow && cut == Cut::Part ? uint32_t(random.below(slots.erase_bytes)) : slots.erase_bytes;
    for (uint32_t i = 0; i < whole; i++)
      bytes[at + i] = cutNow && cut == Cut::Some ? uint8_t(random.next()) : 0xff;
    // What an erase has left half done must not be programmed.
    for (uint32_t unit = at / slots.program_bytes; unit < (at + slots.erase_bytes) / slots.program_bytes;
         unit++) {
      isProgrammed[unit] = cutNow && cut != Cut::Behind;
      isTorn[unit] = isProgrammed[unit] && hasErrorCorrection;
    }
    return cutNow;
  }

  std::vector<bool> isProgrammed, isTorn; ///< by unit
  std::map<uint32_t, int> erases;         ///< by offset
  int left = -1;
  Cut cut = Cut::Before;
  Random random{0};
};

/// A device: a program with its session, which starts anew after a power cut.
class Device {
public:
  explicit Device(Flash &flash) : flash(flash) { restart(); }
  void restart() {
    flash.restart();
    session = makeSession(program());
  }
  /// The same for all.
  static const ortc_program *program() {
    static const OpenProgram opened(makeFile());
    return opened.program.get();
  }
  ortc_status save() { return ortc_slots_save(&flash.slots, session.get(), nullptr, 0, &message); }
  ortc_status load() {
    Bytes buffer(flash.slots.mapped ? 0 : flash.slots.slot_bytes);
    return ortc_slots_load(&flash.slots, session.get(), buffer.data(), buffer.size(), nullptr, &message);
  }
  /// Another state.
  void train(unsigned seed) { trainOn(session.get(), seed); }
  Bytes state() { return stateOf(session.get()); }
  std::string text() const { return message.text; }

  Flash &flash;
  SessionHandle session;
  ortc_message message{};
};

/// Erase unit and program unit.
struct Units {
  uint32_t erase, program;
};
constexpr Units kUnits[] = {{256, 1}, {256, 4}, {128, 8}, {96, 12}, {512, 32}, {4096, 256}, {1024, 512}};
constexpr uint32_t kSlotBytes = 4096 * 3; // a multiple of all

TEST(SlotsTest, Crc32cHasItsCheckValues) { // RFC 3720, B.4, and the check value of the catalogues
  Bytes zeros(32), ones(32, 0xff), counted(32);
  for (size_t i = 0; i < 32; i++)
    counted[i] = uint8_t(i);
  EXPECT_EQ(slots::crc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(slots::crc32c(0, zeros.data(), 32), 0x8a9136aau);
  EXPECT_EQ(slots::crc32c(0, ones.data(), 32), 0x62a8ab43u);
  EXPECT_EQ(slots::crc32c(0, counted.data(), 32), 0x46dd794eu);
  EXPECT_EQ(slots::crc32c(slots::crc32c(0, "1234", 4), "56789", 5), 0xe3069283u);
}

TEST(SlotsTest, SavesAndLoadsWithAllUnits) {
  for (bool isMapped : {false, true})
    for (Units units : kUnits) {
      SCOPED_TRACE(units.program);
      Flash flash(units.erase, units.program, kSlotBytes);
      if (isMapped)
        flash.map();
      Device device(flash);
      EXPECT_EQ(device.load(), ORTC_E_NOT_FOUND);
      EXPECT_EQ(device.text(), "both slots are empty");
      for (unsigned i = 0; i < 5; i++) {
        device.train(i);
        Bytes state = device.state();
        ASSERT_EQ(device.save(), ORTC_OK) << device.text();
        EXPECT_EQ(device.text(), "");
        device.restart();
        EXPECT_NE(device.state(), state);
        ASSERT_EQ(device.load(), ORTC_OK) << device.text();
        EXPECT_EQ(device.text(), "");
        EXPECT_EQ(device.state(), state);
      }
    }
}

/// Cuts the power at every operation of the third save (`saved`: of the first, at 0), in every way.
void cutEverywhere(Units units, bool isMapped, unsigned saved, bool hasErrorCorrection = false) {
  SCOPED_TRACE(testing::Message() << units.erase << "/" << units.program << " mapped " << isMapped
                                  << " saved " << saved);
  bool wasOld = false, wasNew = false;
  for (int at = 0;; at++)
    for (Cut how : kCuts) {
      Flash flash(units.erase, units.program, kSlotBytes);
      if (isMapped)
        flash.map();
      flash.hasErrorCorrection = hasErrorCorrection;
      Device device(flash);
      std::optional<Bytes> before;
      for (unsigned i = 0; i < saved; i++) {
        device.train(i);
        ASSERT_EQ(device.save(), ORTC_OK);
        before = device.state();
      }
      device.train(100);
      Bytes after = device.state();
      flash.cutAt(at, how, uint64_t(at) * 4 + uint64_t(how));
      ortc_status status = device.save();
      if (!flash.isDead) { // it has no more operations
        EXPECT_EQ(status, ORTC_OK);
        EXPECT_GT(at, 3);
        EXPECT_TRUE(wasOld && wasNew);
        return;
      }
      EXPECT_NE(status, ORTC_OK);
      device.restart();
      status = device.load();
      if (status == ORTC_OK) {
        Bytes state = device.state();
        EXPECT_TRUE(state == after || (before && state == *before)) << at;
        (state == after ? wasNew : wasOld) = true;
      } else {
        EXPECT_FALSE(before) << at << ": " << device.text();
        // What cannot be read may be anything that was there.
        EXPECT_TRUE(status == ORTC_E_NOT_FOUND || (hasErrorCorrection && status == ORTC_E_HASH))
            << at << ": " << device.text();
        wasOld = true;
      }
      device.train(200);
      Bytes next = device.state();
      ASSERT_EQ(device.save(), ORTC_OK) << at << ": " << device.text();
      device.restart();
      ASSERT_EQ(device.load(), ORTC_OK) << at;
      EXPECT_EQ(device.state(), next) << at;
    }
}

TEST(SlotsTest, APowerCutAtAnyOperationLeavesTheOldOrTheNewState) {
  for (unsigned saved : {0u, 1u, 2u}) {
    cutEverywhere({256, 8}, false, saved);
    cutEverywhere({4096, 256}, true, saved);
  }
  for (unsigned saved : {0u, 1u, 2u})
    cutEverywhere({512, 32}, false, saved, /*hasErrorCorrection=*/true);
  cutEverywhere({256, 1}, true, 2);
  cutEverywhere({256, 4}, false, 2);
  cutEverywhere({96, 12}, false, 2);
  cutEverywhere({1024, 512}, false, 2);
}

TEST(SlotsTest, PowerThatFailsAgainAndAgainNeverLosesAState) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  Random random(11);
  Bytes last;
  for (unsigned i = 0; i < 3000; i++) {
    device.train(i);
    Bytes next = device.state();
    bool isFirst = last.empty();
    if (!isFirst)
      flash.cutAt(int(random.below(160)), kCuts[random.below(4)], random.next());
    ortc_status status = device.save();
    device.restart();
    ASSERT_EQ(device.load(), ORTC_OK) << i << ": " << device.text();
    Bytes state = device.state();
    ASSERT_TRUE(state == next || (status != ORTC_OK && state == last)) << i;
    last = state;
  }
}

TEST(SlotsTest, BothSlotsWearEqually) {
  Flash flash(512, 32, 1024);
  Device device(flash);
  for (int i = 0; i < 10000; i++)
    ASSERT_EQ(device.save(), ORTC_OK);
  EXPECT_EQ(flash.eraseCount(0), 5000);
  EXPECT_EQ(flash.eraseCount(1), 5000);
  EXPECT_EQ(device.load(), ORTC_OK);
}

TEST(SlotsTest, TheSequenceWrapsAround) {
  Flash flash(256, 4, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  slots::Record record; // of slot 0, as if four milliards of saves had been
  uint8_t *place = flash.bytes.data() + flash.slots.offset[0];
  std::memcpy(&record, place, sizeof record);
  record.sequence = 0xfffffffd;
  record.crc = slots::crc32c(0, &record, offsetof(slots::Record, crc));
  std::memcpy(place, &record, sizeof record);
  for (unsigned i = 0; i < 8; i++) {
    device.train(i);
    Bytes state = device.state();
    ASSERT_EQ(device.save(), ORTC_OK);
    device.restart();
    ASSERT_EQ(device.load(), ORTC_OK);
    EXPECT_EQ(device.state(), state) << i;
  }
  EXPECT_EQ(flash.eraseCount(0), 1 + 4);
  EXPECT_EQ(flash.eraseCount(1), 4);
}

/// The bytes of a slot that mean something: its record, the commit word, and the data.
uint32_t usedBytes(const Flash &flash, int slot) {
  return slots::dataAt(flash.slots) + slots::look(flash.slots, flash.slots.offset[slot]).record.bytes;
}

TEST(SlotsTest, AFlippedBitFallsBackToTheOtherSlot) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  Bytes old = device.state();
  device.train(1);
  ASSERT_EQ(device.save(), ORTC_OK);
  Bytes newest = device.state();
  for (int slot : {0, 1}) // the newest state is in slot 1
    for (uint32_t i = 0, used = usedBytes(flash, slot), offset = flash.slots.offset[slot]; i < used; i++) {
      if ((i >= sizeof(slots::Record) && i < slots::commitAt(flash.slots)) ||
          (i >= slots::commitAt(flash.slots) + 4 && i < slots::dataAt(flash.slots))) {
        EXPECT_EQ(flash.bytes[offset + i], 0xff) << "units are filled up";
        continue;
      }
      flash.bytes[offset + i] ^= uint8_t(1 << i % 8);
      device.session = makeSession(Device::program());
      ASSERT_EQ(device.load(), ORTC_OK) << i;
      EXPECT_EQ(device.state(), slot ? old : newest) << i;
      bool isCommit = i >= slots::commitAt(flash.slots) && i < slots::dataAt(flash.slots);
      if (slot && !isCommit) {
        EXPECT_EQ(device.text(), "the slot at " + std::to_string(offset) + " is damaged");
      }
      flash.bytes[offset + i] ^= uint8_t(1 << i % 8);
    }
  // The next save keeps what is whole.
  flash.bytes[flash.slots.offset[1] + usedBytes(flash, 1) - 1] ^= 4;
  Bytes kept(flash.bytes.begin() + flash.slots.offset[0],
             flash.bytes.begin() + flash.slots.offset[0] + kSlotBytes);
  device.train(2);
  newest = device.state();
  ASSERT_EQ(device.save(), ORTC_OK);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), flash.bytes.begin() + flash.slots.offset[0]));
  device.restart();
  ASSERT_EQ(device.load(), ORTC_OK);
  EXPECT_EQ(device.state(), newest);
}

TEST(SlotsTest, BothDamagedSaysSoAndTheNextSaveWorks) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  device.train(1);
  ASSERT_EQ(device.save(), ORTC_OK);
  for (int slot : {0, 1})
    flash.bytes[flash.slots.offset[slot] + usedBytes(flash, slot) - 1] ^= 1;
  device.restart();
  Bytes fresh = device.state();
  EXPECT_EQ(device.load(), ORTC_E_HASH);
  EXPECT_EQ(device.text(), "neither slot holds a whole state");
  EXPECT_EQ(device.state(), fresh);
  device.train(2);
  Bytes state = device.state();
  ASSERT_EQ(device.save(), ORTC_OK) << device.text();
  device.restart();
  ASSERT_EQ(device.load(), ORTC_OK);
  EXPECT_EQ(device.state(), state);
}

TEST(SlotsTest, FlashThatFailsIsAnErrorAndKeepsTheOldState) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  Bytes old = device.state();
  auto check = [&](const std::string &message) {
    EXPECT_EQ(device.save(), ORTC_E_IO);
    EXPECT_EQ(device.text(), message);
    flash.failErase = flash.failProgram = flash.ignoreProgram = -1;
    device.restart();
    EXPECT_EQ(device.load(), ORTC_OK);
    EXPECT_EQ(device.state(), old);
    device.train(1);
  };
  uint32_t slot = flash.slots.offset[1], data = slot + slots::dataAt(flash.slots);
  device.train(1);
  flash.failErase = flash.operations + 1;
  check("cannot erase at " + std::to_string(slot + 256));
  uint64_t needed = 0;
  ASSERT_EQ(ortc_slots_needed(&flash.slots, device.session.get(), nullptr, 0, &needed, nullptr), ORTC_OK);
  int first = int(needed / 256);
  flash.failProgram = flash.operations + first + 2;
  check("cannot program at " + std::to_string(data + 2 * 8));
  flash.ignoreProgram = flash.operations + first + 2;
  check("what was programmed at " + std::to_string(slot) + " reads differently");
  // The commit word is the last operation.
  int before = flash.operations;
  flash.slots.accept = [](void *, ortc_session *) { return int32_t(0); };
  ASSERT_EQ(device.save(), ORTC_OK);
  int last = flash.operations - before - 1;
  old = device.state();
  slot = flash.slots.offset[0];
  device.train(3);
  flash.ignoreProgram = flash.operations + last;
  check("what was programmed at " + std::to_string(slot) + " reads differently");
}

TEST(SlotsTest, WhatIsNotAcceptedChangesNothing) {
  static ortc_session *asked;
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  ASSERT_EQ(device.save(), ORTC_OK);
  Bytes all = flash.bytes;
  flash.slots.accept = [](void *, ortc_session *session) {
    asked = session;
    return int32_t(1);
  };
  device.train(1);
  EXPECT_EQ(device.save(), ORTC_E_STATE);
  EXPECT_EQ(device.text(), "not accepted");
  EXPECT_EQ(asked, device.session.get());
  EXPECT_EQ(flash.bytes, all);
}

TEST(SlotsTest, AnEvaluationKeepsABadStateOut) {
  Flash flash(256, 8, kSlotBytes);
  flash.slots.accept = [](void *, ortc_session *session) {
    double loss = 0;
    writeBatch(session, 5);
    return int32_t(ortc_eval_step(session, &loss) || !(loss < 10));
  };
  Device device(flash);
  device.train(1);
  Bytes good = device.state();
  ASSERT_EQ(device.save(), ORTC_OK) << device.text();
  for (float bad : {1e6f, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> weights(6, bad);
    weights[0] = -bad;
    ASSERT_EQ(ortc_write(device.session.get(), "fc.weight", weights.data(), 24), ORTC_OK);
    EXPECT_EQ(device.save(), ORTC_E_STATE);
    ASSERT_EQ(device.load(), ORTC_OK);
    EXPECT_EQ(device.state(), good);
  }
}

TEST(SlotsTest, SlotsThatAreTooSmallSayWhatIsNeeded) {
  Flash flash(128, 8, 384);
  Device device(flash);
  uint64_t needed = 0;
  ASSERT_EQ(ortc_slots_needed(&flash.slots, device.session.get(), nullptr, 0, &needed, nullptr), ORTC_OK);
  EXPECT_EQ(device.save(), ORTC_E_SHAPE);
  EXPECT_EQ(device.text(), "slots of 384 bytes are too small: " + std::to_string(needed) + " are needed");
  EXPECT_EQ(flash.operations, 0);
  Flash fitting(128, 8, uint32_t(needed));
  Device other(fitting);
  EXPECT_EQ(other.save(), ORTC_OK) << other.text();
  EXPECT_EQ(other.load(), ORTC_OK) << other.text();
  Flash tight(128, 8, uint32_t(needed) - 128);
  EXPECT_EQ(Device(tight).save(), ORTC_E_SHAPE);
}

TEST(SlotsTest, BadGeometryIsRefused) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  auto check = [&](const std::function<void(ortc_slots &)> &spoil, const std::string &message) {
    ortc_slots good = flash.slots;
    spoil(flash.slots);
    for (ortc_status status : {device.save(), device.load()}) {
      EXPECT_EQ(status, ORTC_E_ARGUMENT);
      EXPECT_EQ(device.text(), message);
    }
    flash.slots = good;
  };
  const std::string incomplete = "the size or a callback is missing";
  check([](ortc_slots &s) { s.size = 8; }, incomplete);
  check([](ortc_slots &s) { s.read = nullptr; }, incomplete);
  check([](ortc_slots &s) { s.program = nullptr; }, incomplete);
  check([](ortc_slots &s) { s.erase = nullptr; }, incomplete);
  check([](ortc_slots &s) { s.program_bytes = 0; }, "program units of 0 bytes do not fit erase units of 256");
  check([](ortc_slots &s) { s.program_bytes = 1024, s.erase_bytes = 4096; },
        "program units of 1024 bytes do not fit erase units of 4096");
  check([](ortc_slots &s) { s.program_bytes = 24; },
        "program units of 24 bytes do not fit erase units of 256");
  check([](ortc_slots &s) { s.erase_bytes = 0; }, "program units of 8 bytes do not fit erase units of 0");
  check([](ortc_slots &s) { s.offset[0] += 8; }, "slots are not whole erase units of 256 bytes");
  check([](ortc_slots &s) { s.offset[1] += 8; }, "slots are not whole erase units of 256 bytes");
  check([](ortc_slots &s) { s.slot_bytes -= 8; }, "slots are not whole erase units of 256 bytes");
  check([](ortc_slots &s) { s.offset[1] = s.offset[0]; }, "slots at 768 and 768 overlap");
  check([](ortc_slots &s) { s.offset[1] = s.offset[0] + kSlotBytes - 256; },
        "slots at 768 and 12800 overlap");
  check([](ortc_slots &s) { s.offset[1] = 0xffffff00; }, "slots at 768 and 4294967040 overlap");
  EXPECT_EQ(flash.operations, 0);
}

TEST(SlotsTest, ACheckpointOfAnotherModelIsRefusedByName) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  Artifact other = makeArtifact();
  other.tensors[kW].name = other.tensors[kGradient].name = "other.weight";
  OpenProgram opened(makeFile(other));
  SessionHandle session = makeSession(opened.program.get());
  Bytes buffer(kSlotBytes);
  EXPECT_EQ(
      ortc_slots_load(&flash.slots, session.get(), buffer.data(), buffer.size(), nullptr, &device.message),
      ORTC_E_NOT_FOUND);
  EXPECT_EQ(device.text(), "checkpoint has no 'other.weight'");
}

TEST(SlotsTest, ABufferThatIsTooSmallSaysWhatIsNeeded) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ASSERT_EQ(device.save(), ORTC_OK);
  uint32_t needed = slots::look(flash.slots, flash.slots.offset[0]).record.bytes;
  Bytes buffer(needed);
  auto load = [&](void *to, size_t bytes) {
    return ortc_slots_load(&flash.slots, device.session.get(), to, bytes, nullptr, &device.message);
  };
  EXPECT_EQ(load(nullptr, 0), ORTC_E_MEMORY);
  EXPECT_EQ(load(buffer.data(), needed - 1), ORTC_E_MEMORY);
  EXPECT_EQ(device.text(), "a buffer of " + std::to_string(needed - 1) +
                               " bytes is too small: " + std::to_string(needed) + " are needed");
  EXPECT_EQ(load(buffer.data(), needed), ORTC_OK);
}

TEST(SlotsTest, TheTransientRegionIsABuffer) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  device.train(1);
  Bytes state = device.state();
  ASSERT_EQ(device.save(), ORTC_OK);
  alignas(64) static uint8_t transient[4096];
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.transient = transient;
  SessionHandle session = makeSession(Device::program(), &options);
  EXPECT_EQ(ortc_slots_load(&flash.slots, session.get(), transient, sizeof transient, nullptr, nullptr),
            ORTC_OK);
  EXPECT_EQ(stateOf(session.get()), state);
}

TEST(SlotsTest, MetadataTravelAlong) {
  Flash flash(256, 8, kSlotBytes);
  Device device(flash);
  ortc_metadata position = {"position", "17"};
  ASSERT_EQ(ortc_slots_save(&flash.slots, device.session.get(), &position, 1, &device.message), ORTC_OK);
  std::string seen;
  ortc_load_info info = ORTC_INIT(ortc_load_info);
  info.metadata = [](void *context, const char *key, const char *value) {
    *static_cast<std::string *>(context) += std::string(key) + "=" + value;
  };
  info.metadata_context = &seen;
  Bytes buffer(kSlotBytes);
  ASSERT_EQ(ortc_slots_load(&flash.slots, device.session.get(), buffer.data(), buffer.size(), &info, nullptr),
            ORTC_OK);
  EXPECT_EQ(seen, "position=17");
  EXPECT_EQ(info.loaded, 4u);
  ortc_metadata reserved = {"ortc.x", "1"};
  EXPECT_EQ(ortc_slots_save(&flash.slots, device.session.get(), &reserved, 1, &device.message),
            ORTC_E_ARGUMENT);
  EXPECT_EQ(device.text(), "'ortc.x' is too long, or reserved");
}

} // namespace
} // namespace ortc::test
