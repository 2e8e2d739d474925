// Who leaves says so on the connections themselves, to senders and receivers alike.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "engine/network.h"

namespace riffle::engine {
namespace {

// Keeps what one end is told.
class Ears final : public Network::Events {
 public:
  std::size_t bytes = 0;
  std::optional<Rank> blamed;  // by the peer's goodbye
  bool is_lost = false;

  bool begin(Rank, const Chunk&, std::size_t) override { return true; }
  std::byte* place(Rank, const Chunk& chunk, std::size_t done) override {
    return memory_.data() + chunk.offset + done;
  }
  void arrived(Rank, const Chunk&, std::size_t arrived) override { bytes += arrived; }
  void sent(std::uint64_t) override {}
  void left(Rank, Rank culprit) override { blamed = culprit; }
  void lost(Rank) override { is_lost = true; }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
};

class Pair : public testing::Test {
 protected:
  Pair() {
    for (Rank self = 0; self < 2; ++self)
      ends.push_back(make_tcp_network(
          {.self = self, .size = 2, .session = 77, .interface = "lo", .ip = "127.0.0.1"}));
    ends[0]->open({"", ends[1]->address()}, ears[0]);
    ends[1]->open({ends[0]->address(), ""}, ears[1]);
    const std::vector<std::byte> data(100);
    ends[0]->send(1, {.tag = {}, .bytes = 100, .offset = 0}, data, 1, nullptr);
    EXPECT_TRUE(until([&] { return ears[1].bytes == 100; }));
  }

  // Both move until it is so.
  template <typename Condition>
  bool until(const Condition& holds) {
    for (const Deadline end = after(Seconds(20)); !holds() && Clock::now() < end;)
      for (const auto& each : ends)
        if (each != nullptr) each->progress();
    return holds();
  }
  // One end leaves and is gone, while the other moves.
  void leave(Rank who, Rank culprit) {
    std::thread leaving([&] {
      ends[static_cast<std::size_t>(who)]->leave(culprit, after(Seconds(20)),
                                                 [](Rank) { return false; });
      ends[static_cast<std::size_t>(who)].reset();
    });
    Network& other = *ends[static_cast<std::size_t>(1 - who)];
    Ears& hears = ears[1 - who];
    for (const Deadline end = after(Seconds(20)); !hears.blamed && !hears.is_lost;) {
      other.progress();
      if (Clock::now() > end) break;
    }
    leaving.join();
    for (int i = 0; i < 1000; ++i) other.progress();  // the end of the connections
  }

  Ears ears[2];
  std::vector<std::unique_ptr<Network>> ends;
};

TEST_F(Pair, TheSenderLeaves) {
  leave(0, 1);
  EXPECT_EQ(ears[1].blamed, 1);
  EXPECT_FALSE(ears[1].is_lost);
}

TEST_F(Pair, TheReceiverLeaves) {
  leave(1, -1);
  EXPECT_EQ(ears[0].blamed, -1);
  EXPECT_FALSE(ears[0].is_lost);
}

TEST_F(Pair, WhoGoesWithoutAWordIsLost) {
  ends[1].reset();
  EXPECT_TRUE(until([&] { return ears[0].is_lost; }));
  EXPECT_FALSE(ears[0].blamed);
}

}  // namespace
}  // namespace riffle::engine
