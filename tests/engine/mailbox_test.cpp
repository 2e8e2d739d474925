// Lanes take turns: what several channels send to one rank leaves chunk by chunk in turns, whatever
// each has waiting, and the messages of one channel one after the other.
#include "engine/mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace riffle::engine {
namespace {

// Takes chunks while it has room, and says that they are sent when told to.
class RecordingNetwork final : public Network {
 public:
  struct Taken {
    std::uint64_t channel;
    std::uint32_t sequence;
    std::size_t bytes;
    bool operator==(const Taken&) const = default;
  };
  std::vector<Taken> taken;
  std::size_t room = 0;

  // Lets so many chunks pass.
  void pass(std::size_t chunks) { room += chunks; }

  [[nodiscard]] std::string address() const override { return "here"; }
  void open(std::vector<std::string> /*addresses*/, Events& events) override { events_ = &events; }
  [[nodiscard]] std::size_t chunk_bytes(Rank /*to*/) const override { return 100; }
  [[nodiscard]] bool has_room(Rank /*to*/) const override { return room > 0; }
  void send(Rank /*to*/, const Chunk& chunk, std::span<const std::byte> data, std::uint64_t request,
            std::shared_ptr<const void> /*keep*/) override {
    --room;
    taken.push_back({chunk.tag.channel, chunk.tag.sequence, data.size()});
    events_->sent(request);
  }
  [[nodiscard]] std::size_t bytes_on_the_way(Rank /*to*/) const override { return 0; }
  bool progress() override { return false; }
  void abandon(Rank /*peer*/) override {}
  void leave(Rank, Deadline, const std::function<bool(Rank)>&) override {}
  [[nodiscard]] int event_fd() const override { return -1; }
  [[nodiscard]] bool arm() override { return true; }

 private:
  Events* events_ = nullptr;
};

class Turns : public testing::Test {
 protected:
  std::uint64_t send(std::uint64_t channel, std::uint32_t sequence, std::size_t bytes) {
    return mailbox.send(1, {.channel = channel, .sequence = sequence, .round = 1},
                        std::span(memory).first(bytes));
  }
  void pass(std::size_t chunks) {
    network.pass(chunks);
    mailbox.progress();
  }
  [[nodiscard]] std::size_t bytes_of(std::uint64_t channel) const {
    std::size_t sum = 0;
    for (const auto& each : network.taken)
      if (each.channel == channel) sum += each.bytes;
    return sum;
  }

  std::vector<std::byte> memory = std::vector<std::byte>(100'000);
  RecordingNetwork network;
  Mailbox mailbox{0,
                  {{.out = nullptr, .in = nullptr, .address = {}},
                   {.out = nullptr, .in = nullptr, .address = "there"}},
                  &network,
                  {.wake = [](Rank) {}, .failed = [](Rank) { return false; }}};
};

TEST_F(Turns, TwoLanesShareAWayEvenly) {
  for (std::uint32_t i = 0; i < 20; ++i) send(1, i, 500);  // one has posted all of its messages
  for (std::uint32_t i = 0; i < 20; ++i) send(2, i, 500);  // before the other began
  for (int i = 0; i < 200; ++i) {
    pass(1);
    const auto ahead =
        static_cast<std::ptrdiff_t>(bytes_of(1)) - static_cast<std::ptrdiff_t>(bytes_of(2));
    ASSERT_LE(std::abs(ahead), 100) << "after " << i + 1 << " chunks";
  }
  EXPECT_EQ(bytes_of(1), 10'000U);
  EXPECT_EQ(bytes_of(2), 10'000U);
}

TEST_F(Turns, ALaneThatComesLaterHasItsTurnAtOnce) {
  send(7, 0, 10'000);
  pass(10);
  send(3, 0, 300);
  const std::uint64_t last = send(9, 0, 100);
  pass(7);
  // Three chunks of 3, one of 9, and in between 7 went on.
  EXPECT_EQ(bytes_of(3), 300U);
  EXPECT_EQ(bytes_of(9), 100U);
  EXPECT_EQ(bytes_of(7), 1300U);
  EXPECT_FALSE(mailbox.is_pending(last));
}

TEST_F(Turns, MessagesOfALaneStayInOrder) {
  for (std::uint32_t i = 0; i < 5; ++i) {
    send(1, i, 250);
    send(2, i, 120);
  }
  pass(1000);
  for (const std::uint64_t channel : {1U, 2U}) {
    std::vector<std::uint32_t> order;
    for (const auto& each : network.taken)
      if (each.channel == channel) order.push_back(each.sequence);
    EXPECT_TRUE(std::ranges::is_sorted(order)) << "channel " << channel;
    EXPECT_EQ(bytes_of(channel), channel == 1 ? 1250U : 600U);
  }
}

TEST_F(Turns, AloneALaneHasTheWholeWay) {
  send(5, 0, 1000);
  pass(10);
  EXPECT_EQ(bytes_of(5), 1000U);
}

}  // namespace
}  // namespace riffle::engine
