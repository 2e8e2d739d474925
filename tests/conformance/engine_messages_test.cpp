// What every engine promises about messages.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "riffle/error.h"
#include "riffle/random.h"
#include "support/workers.h"

namespace riffle::test {
namespace {

Wait soon(std::string_view operation = "test") {
  return {.deadline = after(Seconds(20)), .context = {.operation = operation}};
}

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> data(bytes);
  for (auto& byte : data) byte = static_cast<std::byte>(random.next());
  return data;
}

class EngineMessages : public testing::TestWithParam<Kind> {};

TEST_P(EngineMessages, ArriveWholeAtAnySize) {
  run_world(GetParam(), 2, [](Engine& engine) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{262144},
          std::size_t{262145}, std::size_t{3000001}}) {
      const Rank peer = 1 - engine.rank();
      const auto out = pattern(bytes, static_cast<std::uint64_t>(engine.rank()));
      std::vector<std::byte> in(bytes);
      Request requests[] = {engine.send(peer, {.channel = bytes}, out),
                            engine.receive(peer, {.channel = bytes}, in)};
      engine.wait_all(requests, soon());
      EXPECT_EQ(in, pattern(bytes, static_cast<std::uint64_t>(peer)));
    }
  });
}

TEST_P(EngineMessages, OneTagKeepsOrderAndTagsAreIndependent) {
  run_world(GetParam(), 2, [](Engine& engine) {
    constexpr int count = 200;
    if (engine.rank() == 0) {
      std::vector<int> values(2 * count);
      std::iota(values.begin(), values.end(), 0);
      std::vector<Request> sends;
      for (int i = 0; i < count; ++i)
        for (int t = 0; t < 2; ++t)
          sends.push_back(engine.send(
              1, {.channel = 7, .sequence = static_cast<std::uint32_t>(t)},
              std::as_bytes(std::span(&values[static_cast<std::size_t>(2 * i + t)], 1))));
      engine.wait_all(sends, soon());
    } else {
      for (std::uint32_t t = 2; t-- > 0;)  // the second tag first: all of the first are kept
        for (int i = 0; i < count; ++i) {
          int value = -1;
          Request request = engine.receive(0, {.channel = 7, .sequence = t},
                                           std::as_writable_bytes(std::span(&value, 1)));
          engine.wait(request, soon());
          EXPECT_TRUE(request.empty());
          EXPECT_EQ(value, 2 * i + static_cast<int>(t));
        }
    }
  });
}

TEST_P(EngineMessages, ToOneself) {
  run_world(GetParam(), 1, [](Engine& engine) {
    const auto out = pattern(5000, 1);
    std::vector<std::byte> early(5000);
    std::vector<std::byte> late(5000);
    Request receive = engine.receive(0, {}, early);
    Request sends[] = {engine.send(0, {}, out), engine.send(0, {}, out)};
    engine.wait_all(sends, soon());
    engine.wait(receive, soon());
    Request second = engine.receive(0, {}, late);
    EXPECT_TRUE(engine.test(second));
    EXPECT_EQ(early, out);
    EXPECT_EQ(late, out);
  });
}

TEST_P(EngineMessages, ManyToManyInRandomOrder) {
  run_world(GetParam(), 4, [](Engine& engine) {
    constexpr int rounds = 60;
    std::vector<Request> requests;
    std::vector<std::vector<std::byte>> outs;
    std::vector<std::vector<std::byte>> ins;
    const auto seed = [](Rank from, Rank to, int round) {
      return static_cast<std::uint64_t>(from * 10000 + to * 1000 + round);
    };
    for (int round = 0; round < rounds; ++round)
      for (Rank peer = 0; peer < engine.size(); ++peer) {
        const auto bytes = [&](Rank from, Rank to) {
          return Random(seed(from, to, round)).below(20000);
        };
        outs.push_back(pattern(bytes(engine.rank(), peer), seed(engine.rank(), peer, round)));
        ins.emplace_back(bytes(peer, engine.rank()));
      }
    Random order(99, static_cast<std::uint64_t>(engine.rank()));
    for (const int i : order.permutation(static_cast<int>(outs.size()))) {
      const std::size_t at = static_cast<std::size_t>(i);
      const Tag tag{.channel = 1, .round = static_cast<std::uint32_t>(i / engine.size())};
      requests.push_back(engine.send(i % engine.size(), tag, outs[at]));
      requests.push_back(engine.receive(i % engine.size(), tag, ins[at]));
    }
    for (std::size_t left = requests.size(); left > 0; --left) engine.wait_any(requests, soon());
    EXPECT_THROW(engine.wait_any(requests, soon()), UsageError);
    for (int i = 0; i < static_cast<int>(ins.size()); ++i) {
      const auto& in = ins[static_cast<std::size_t>(i)];
      EXPECT_EQ(in, pattern(in.size(), seed(i % engine.size(), engine.rank(), i / engine.size())));
    }
  });
}

TEST_P(EngineMessages, ThreadsOfOneRankDoNotMixUp) {
  run_world(GetParam(), 2, [](Engine& engine) {
    std::vector<std::thread> threads;
    for (std::uint64_t channel = 0; channel < 4; ++channel)
      threads.emplace_back([&, channel] {
        const Rank peer = 1 - engine.rank();
        for (std::uint32_t i = 0; i < 200; ++i) {
          const std::uint64_t out = channel * 1000 + i;
          std::uint64_t in = 0;
          Request requests[] = {engine.send(peer, {.channel = channel, .sequence = i},
                                            std::as_bytes(std::span(&out, 1))),
                                engine.receive(peer, {.channel = channel, .sequence = i},
                                               std::as_writable_bytes(std::span(&in, 1)))};
          engine.wait_all(requests, soon());
          EXPECT_EQ(in, out);
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
}

TEST_P(EngineMessages, WrongSizeNamesBothAndHarmsNothingElse) {
  run_world(GetParam(), 2, [](Engine& engine) {
    std::vector<std::byte> data(100);
    if (engine.rank() == 0) {
      Request sends[] = {engine.send(1, {}, std::span(data).first(60)), engine.send(1, {}, data)};
      engine.wait_all(sends, soon());
      return;
    }
    Request request = engine.receive(0, {}, data);
    try {
      engine.wait(request, soon("all_reduce"));
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_EQ(error.failure(), CommFailure::mismatch);
      EXPECT_EQ(error.rank(), 0);
      EXPECT_NE(std::string(error.what()).find("60 bytes where 100"), std::string::npos);
      EXPECT_EQ(error.operation(), "all_reduce");
    }
    request = engine.receive(0, {}, data);
    engine.wait(request, soon());
  });
}

TEST_P(EngineMessages, DeadlineAndCancelLeaveTheMessageAlone) {
  run_world(GetParam(), 2, [](Engine& engine) {
    std::uint32_t value = 0;
    const auto bytes = std::as_writable_bytes(std::span(&value, 1));
    if (engine.rank() == 1) {
      Request request = engine.receive(0, {.channel = 5}, bytes);
      try {
        engine.wait(request, {.deadline = after(milliseconds(20)), .context = {.operation = "x"}});
        ADD_FAILURE() << "no error";
      } catch (const CommError& error) {
        EXPECT_EQ(error.failure(), CommFailure::timed_out);
        EXPECT_EQ(error.rank(), 0);
      }
      request = engine.receive(0, {.channel = 5}, bytes);
      engine.cancel(request);
      Request go = engine.send(0, {.channel = 6}, {});
      engine.wait(go, soon());
      request = engine.receive(0, {.channel = 5}, bytes);
      engine.wait(request, soon());
      EXPECT_EQ(value, 42u);
    } else {
      Request go = engine.receive(1, {.channel = 6}, {});
      engine.wait(go, soon());
      value = 42;
      Request request = engine.send(1, {.channel = 5}, bytes);
      engine.wait(request, soon());
    }
  });
}

TEST_P(EngineMessages, CancelledHalfWayTheStreamStaysWhole) {
  run_world(GetParam(), 2, [](Engine& engine) {
    std::vector<std::byte> big(1 << 20, std::byte{1});
    std::vector<std::byte> small(16, std::byte{2});
    if (engine.rank() == 0) {
      Request first = engine.send(1, {.channel = 1}, big);  // larger than the ring: begun, not done
      engine.cancel(first);
      std::fill(big.begin(), big.end(), std::byte{9});  // must not be seen
      Request second = engine.send(1, {.channel = 2}, small);
      engine.wait(second, soon());
    } else {
      std::vector<std::byte> in(big.size());
      Request first = engine.receive(0, {.channel = 1}, in);
      engine.wait(first, soon());
      EXPECT_EQ(in, big);
      Request second = engine.receive(0, {.channel = 2}, small);
      engine.wait(second, soon());
      EXPECT_EQ(small[0], std::byte{2});
    }
  });
}

TEST_P(EngineMessages, BadRankIsAUsageError) {
  run_world(GetParam(), 1, [](Engine& engine) {
    EXPECT_THROW((void)engine.send(1, {}, {}), UsageError);
    EXPECT_THROW((void)engine.receive(-1, {}, {}), UsageError);
  });
}

INSTANTIATE_TEST_SUITE_P(All, EngineMessages, testing::ValuesIn(kinds()),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace riffle::test
