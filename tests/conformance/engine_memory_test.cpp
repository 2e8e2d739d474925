// What every engine with a HostMemory promises about memory and waiting.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "riffle/error.h"
#include "support/workers.h"

namespace riffle::test {
namespace {

class EngineMemory : public testing::TestWithParam<Kind> {};

void meet(Engine& engine) {
  for (Rank peer = 0; peer < engine.size(); ++peer) {
    Request requests[] = {engine.send(peer, {.channel = ~0ULL}, {}),
                          engine.receive(peer, {.channel = ~0ULL}, {})};
    engine.wait_all(requests, {.deadline = after(Seconds(20)), .context = {.operation = "meet"}});
  }
}

TEST_P(EngineMemory, BuffersAreZeroedAlignedAndRecycled) {
  run_world(GetParam(), 1, [](Engine& engine) {
    std::vector<Buffer> buffers;
    for (int round = 0; round < 3; ++round) {
      for (const std::size_t bytes : {1u, 4096u, 100'000u, 8u << 20}) {
        buffers.push_back(engine.allocate(bytes));
        const auto all = buffers.back().bytes();
        EXPECT_EQ(all.size(), bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.data()) % 64, 0u);
        EXPECT_TRUE(
            std::all_of(all.begin(), all.end(), [](std::byte b) { return b == std::byte{0}; }));
        std::fill(all.begin(), all.end(), std::byte{0xff});
      }
      buffers.erase(buffers.begin() + 1, buffers.end() - 1);
    }
    HostMemory& memory = *engine.host_memory();
    const Buffer& any = buffers.front();
    EXPECT_TRUE(memory.locate(any.data(), any.size()).has_value());
    EXPECT_FALSE(memory.locate(any.data(), any.size() + 100'000'000).has_value());
    const int foreign = 0;
    EXPECT_FALSE(memory.locate(reinterpret_cast<const std::byte*>(&foreign), sizeof foreign));
  });
}

TEST_P(EngineMemory, TooMuchIsSaidBefore) {
  run_world(GetParam(), 1, [](Engine& engine) {
    EXPECT_THROW((void)engine.allocate(std::size_t{1} << 45), UsageError);
    EXPECT_THROW((void)engine.allocate(SIZE_MAX), UsageError);
    EXPECT_NO_THROW((void)engine.allocate(1));
  });
}

TEST_P(EngineMemory, PeersSeeEachOthersBuffers) {
  run_world(GetParam(), 3, [](Engine& engine) {
    HostMemory& memory = *engine.host_memory();
    const Buffer own = engine.allocate(sizeof(int) * 4);
    own.as<int>()[1] = 100 + engine.rank();
    auto* board = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.board(engine.rank()));
    board->store(memory.locate(own.data(), own.size()).value());
    meet(engine);
    for (const Rank peer : memory.ranks()) {
      const auto at = reinterpret_cast<std::atomic<std::uint64_t>*>(memory.board(peer))->load();
      const std::byte* theirs = memory.view(peer, at, own.size());
      EXPECT_EQ(reinterpret_cast<const int*>(theirs)[1], 100 + peer);
      EXPECT_THROW((void)memory.view(peer, at, std::size_t{1} << 40), CommError);
      EXPECT_THROW((void)memory.view(peer, 0, 8), CommError);
    }
    meet(engine);
  });
}

// Two ranks throw a ball that neither of them sees without being woken.
TEST_P(EngineMemory, BellsWakeSleepers) {
  run_world(GetParam(), 2, [](Engine& engine) {
    HostMemory& memory = *engine.host_memory();
    const Rank peer = 1 - engine.rank();
    const Rank everyone[] = {peer};
    auto& mine = *reinterpret_cast<std::atomic<int>*>(memory.board(engine.rank()));
    auto& theirs = *reinterpret_cast<std::atomic<int>*>(memory.board(peer));
    for (int round = 1; round <= 300; ++round) {
      if (round % 100 == 0 && engine.rank() == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until the other sleeps
      mine.store(round, std::memory_order_release);
      memory.ring(everyone, 3);
      memory.wait(
          3, [&] { return theirs.load(std::memory_order_acquire) >= round; },
          {.deadline = after(Seconds(20)), .context = {.operation = "ball"}, .watch = everyone});
    }
  });
}

TEST_P(EngineMemory, HostsAreNamed) {
  run_world(GetParam(), 2, [](Engine& engine) {
    EXPECT_EQ(engine.host(0), engine.host(1));
    EXPECT_FALSE(engine.host(0).empty());
    EXPECT_EQ(engine.host_memory()->ranks(), Group({0, 1}));
    EXPECT_EQ(engine.name(), name_of(GetParam()));
  });
}

INSTANTIATE_TEST_SUITE_P(All, EngineMemory, testing::Values(Kind::loopback, Kind::shm),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace riffle::test
