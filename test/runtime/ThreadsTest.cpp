// The thread pool, sessions in two threads, and failing allocations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ortc/threads.h"

#include <atomic>
#include <thread>

#include "test/runtime/TestArtifact.h"

namespace ortc::test {
namespace {

struct Pool {
  explicit Pool(uint32_t workers) : pool(ortc_pool_create(workers)) {}
  ~Pool() { ortc_pool_destroy(pool); }
  ortc_pool *pool;
};

TEST(PoolTest, RunsEveryChunkOnceByTheWorkerItBelongsTo) {
  for (uint32_t workers : {1u, 2u, 3u, 8u}) {
    Pool p(workers);
    ASSERT_NE(p.pool, nullptr);
    EXPECT_EQ(ortc_pool_workers(p.pool), workers);
    for (int64_t chunks : {0, 1, 2, 7, 64, 1000}) {
      std::vector<int64_t> owner(static_cast<size_t>(chunks), -1);
      ortc_pool_parallel_for(
          p.pool, chunks,
          [](void *context, int64_t chunk, int64_t worker) {
            auto &places = *static_cast<std::vector<int64_t> *>(context);
            EXPECT_EQ(places[static_cast<size_t>(chunk)], -1);
            places[static_cast<size_t>(chunk)] = worker;
          },
          &owner);
      for (int64_t c = 0; c < chunks; ++c) {
        int64_t w = owner[static_cast<size_t>(c)];
        ASSERT_GE(w, 0);
        EXPECT_LE(chunks * w / workers, c);
        EXPECT_LT(c, chunks <= 1 ? 1 : chunks * (w + 1) / workers);
      }
    }
  }
}

TEST(PoolTest, ManyShortJobsSeeEachOthersWrites) {
  Pool p(4);
  std::vector<int64_t> values(16, 0);
  for (int round = 0; round < 5000; ++round)
    ortc_pool_parallel_for(
        p.pool, 16,
        [](void *context, int64_t chunk, int64_t) {
          auto &v = *static_cast<std::vector<int64_t> *>(context);
          ++v[static_cast<size_t>(chunk)];
        },
        &values);
  for (int64_t v : values)
    EXPECT_EQ(v, 5000);
}

TEST(PoolTest, SleepersAreWoken) {
  Pool p(3);
  std::atomic<int> count = 0;
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2)); // long enough to fall asleep
    ortc_pool_parallel_for(
        p.pool, 3,
        [](void *context, int64_t chunk, int64_t) {
          if (chunk == 2)
            std::this_thread::sleep_for(std::chrono::milliseconds(1)); // the caller sleeps, too
          ++*static_cast<std::atomic<int> *>(context);
        },
        &count);
  }
  EXPECT_EQ(count, 60);
}

TEST(PoolTest, ImpossiblePoolsAreRefused) {
  EXPECT_EQ(ortc_pool_create(0), nullptr);
  EXPECT_EQ(ortc_pool_create(ORTC_POOL_MAX_WORKERS + 1), nullptr);
  ortc_pool_destroy(nullptr);
}

TEST(PoolTest, AnyNumberOfWorkersGivesTheSameBits) {
  OpenProgram opened(makeFile());
  Bytes expected;
  for (uint32_t workers : {1u, 2u, 4u}) {
    Pool p(workers);
    ortc_session_options options{};
    options.size = sizeof options;
    options.workers = workers;
    options.parallel_for = ortc_pool_parallel_for;
    options.pool = p.pool;
    SessionHandle session = makeSession(opened.program.get(), &options);
    for (unsigned i = 0; i < 10; ++i)
      trainOn(session.get(), i);
    if (expected.empty())
      expected = stateOf(session.get());
    EXPECT_EQ(stateOf(session.get()), expected) << workers;
  }
}

TEST(ConcurrencyTest, TwoSessionsOfOneProgramRunInTwoThreads) {
  OpenProgram opened(makeFile());
  Bytes results[2];
  std::string folder = makeFolder("threads");
  auto work = [&](int which) {
    SessionHandle session = makeSession(opened.program.get());
    for (unsigned i = 0; i < 200; ++i)
      trainOn(session.get(), i);
    std::string path = folder + "/" + std::to_string(which);
    EXPECT_EQ(ortc_checkpoint_save(session.get(), path.c_str(), nullptr, 0), ORTC_OK);
    EXPECT_EQ(ortc_session_reset(session.get()), ORTC_OK);
    EXPECT_EQ(ortc_checkpoint_load(session.get(), path.c_str(), nullptr), ORTC_OK);
    results[which] = stateOf(session.get());
  };
  std::thread first(work, 0), second(work, 1);
  first.join();
  second.join();
  EXPECT_EQ(results[0], results[1]);
}

// ---- Failing allocations ----

/// Fails the allocation number `failAt`, counts what is in use.
struct Allocator {
  int failAt = -1, count = 0, live = 0;
  size_t bytes = 0;

  static void *allocate(void *context, size_t bytes, size_t alignment) {
    auto *self = static_cast<Allocator *>(context);
    if (self->count++ == self->failAt)
      return nullptr;
    ++self->live;
    self->bytes += bytes;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  static void release(void *context, void *memory, size_t bytes) {
    auto *self = static_cast<Allocator *>(context);
    --self->live;
    self->bytes -= bytes;
    std::free(memory);
  }
  ortc_host host() {
    ortc_host h{};
    h.size = sizeof h;
    h.context = this;
    h.allocate = allocate;
    h.release = release;
    return h;
  }
};

TEST(AllocationTest, EveryFailureIsReportedAndLeaksNothing) {
  std::string path = makeFolder("allocation") + "/model.ortc";
  writeFile(path, makeFile());
  int failures = 0;
  for (int failAt = 0;; ++failAt) {
    Allocator allocator;
    allocator.failAt = failAt;
    ortc_host host = allocator.host();
    ortc_program *program = nullptr;
    ortc_session *session = nullptr;
    ortc_message message{};
    ortc_status status = ortc_program_open_file(path.c_str(), &host, &program, &message);
    if (status == ORTC_OK)
      status = ortc_session_create(program, nullptr, &session, &message);
    bool isFailed = allocator.count > failAt;
    EXPECT_EQ(status, isFailed ? ORTC_E_MEMORY : ORTC_OK);
    EXPECT_EQ(session == nullptr, isFailed);
    if (isFailed) {
      ++failures;
      EXPECT_EQ(std::string(message.text).find("out of memory"), 0u) << message.text;
    }
    ortc_session_destroy(session);
    ortc_program_close(program);
    EXPECT_EQ(allocator.live, 0);
    EXPECT_EQ(allocator.bytes, 0u);
    if (!isFailed)
      break;
  }
  EXPECT_EQ(failures, 11); // program, head, 7 tables, steps; session
}

TEST(AllocationTest, StepsAndCheckpointsAllocateNothing) {
  Allocator allocator;
  ortc_host host = allocator.host();
  OpenProgram opened(makeFile(), &host);
  SessionHandle session = makeSession(opened.program.get());
  int count = allocator.count;
  std::string path = makeFolder("nothing") + "/ck";
  trainOn(session.get(), 0);
  EXPECT_EQ(ortc_checkpoint_save(session.get(), path.c_str(), nullptr, 0), ORTC_OK);
  EXPECT_EQ(ortc_checkpoint_load(session.get(), path.c_str(), nullptr), ORTC_OK);
  EXPECT_EQ(allocator.count, count);
}

} // namespace
} // namespace ortc::test
