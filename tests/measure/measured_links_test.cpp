// What is measured on links of known latency and bandwidth: real messages and threads, each rank a
// host of its own. Latencies are long enough that a busy machine adds little to them.
#include <gtest/gtest.h>

#include <cmath>

#include "measure/flows.h"
#include "measure/network.h"
#include "support/emulated_links.h"
#include "support/passing_engine.h"
#include "support/ranks.h"

namespace riffle::measure {
namespace {

constexpr Link kLink{milliseconds(10), {10e6}};
// A busy machine disturbs a measurement now and then; what is wrong is wrong every time.
constexpr int kTries = 3;

std::vector<std::string> own_hosts(int n) {
  std::vector<std::string> hosts;
  for (int r = 0; r < n; ++r) hosts.push_back("host" + std::to_string(r));
  return hosts;
}

void run_emulated(int n, const std::function<void(Engine&, const collective::Control&)>& body) {
  LoopbackWorld world(own_hosts(n), {.failure_timeout = Seconds(30)});
  test::EmulatedLinks links(n, kLink);
  test::run_ranks(world, [&](Rank rank) {
    test::EmulatedEngine engine(world.engine(rank), links);
    Collectives collectives(engine);
    body(engine, {collectives, Membership::all(n).ranks, Seconds(60)});
  });
}

bool is_close(const Link& found) {
  const double latency = found.latency / kLink.latency;
  const double rate = found.bandwidth.bytes_per_second / kLink.bandwidth.bytes_per_second;
  return std::abs(latency - 1) <= 0.15 && std::abs(rate - 1) <= 0.15;
}

std::string spell(const Link& link) {
  return print(link.latency) + " " + print(link.bandwidth);
}

class CountingEngine : public test::PassingEngine {
 public:
  using PassingEngine::PassingEngine;
  int sent = 0;
  [[nodiscard]] Request send(Rank to, Tag tag, std::span<const std::byte> data) override {
    sent += data.size() == sizeof(std::uint64_t) && tag.channel == kEchoChannel ? 1 : 0;
    return PassingEngine::send(to, tag, data);
  }

 private:
  static constexpr std::uint64_t kEchoChannel = 0x6563686f;
};

// Rank 0 measures all its pairs: with no time a trip to find the peer, a timed one and the end, for
// each; with time, as many as settle the matter, and every pair twice.
TEST(MeasuredLinks, EchoesKeepToTheirBudget) {
  constexpr int n = 4;
  for (const bool hurried : {true, false})
    run_emulated(n, [&](Engine& below, const collective::Control& control) {
      CountingEngine engine(below);
      const Place place(engine, control);
      const auto echoes =
          time_echoes(place, Membership::all(n).ranks, Seconds(hurried ? 1e-9 : 1000));
      if (engine.rank() == 0) {
        if (hurried) {
          EXPECT_EQ(engine.sent, (n - 1) * 3);
        } else {
          EXPECT_GE(engine.sent, 2 * (n - 1) * 5);
        }
      }
      EXPECT_GE(echoes.at(1, 2)->one_way(), kLink.latency);
    });
}

// The whole measurement: by 2, an odd number and more.
TEST(MeasuredLinks, AreFoundBetweenHosts) {
  for (const int n : {2, 3, 5}) {
    std::string found;
    bool close = false;
    for (int i = 0; i < kTries && !close; ++i) {
      Cluster cluster;
      run_emulated(n, [&](Engine& engine, const collective::Control& control) {
        const Network network = measure_network(Place(engine, control), quick_look({}));
        if (engine.rank() == 0) cluster = network.fit.cluster;
      });
      close = cluster.domains.size() == 1 &&
              std::ranges::all_of(cluster.workers,
                                  [](const WorkerSpec& each) { return is_close(each.link); });
      for (const WorkerSpec& each : cluster.workers) found += spell(each.link) + ", ";
    }
    EXPECT_TRUE(close) << n << " hosts: " << found << "not " << spell(kLink);
  }
}

TEST(MeasuredLinks, FlowsCarryWhatTheirLinksDo) {
  std::string found;
  bool close = false;
  for (int i = 0; i < kTries && !close; ++i) {
    std::vector<Carried> carried;
    run_emulated(5, [&](Engine& engine, const collective::Control& control) {
      const std::vector<Flow> flows{{0, 1, kibibytes(16), 2 * kLink.latency},
                                    {3, 2, kibibytes(64), 2 * kLink.latency}};
      const auto seen = carry(Place(engine, control), flows, Seconds(0.4));
      if (engine.rank() == 4) carried = seen;  // who carries nothing knows it too
    });
    ASSERT_EQ(carried.size(), 2U);
    close = std::ranges::all_of(carried, [](const Carried& each) {
      return std::abs(each.rate.bytes_per_second / kLink.bandwidth.bytes_per_second - 1) < 0.15;
    });
    for (const Carried& each : carried) found += print(each.rate) + ", ";
  }
  EXPECT_TRUE(close) << found << "not " << print(kLink.bandwidth);
}

}  // namespace
}  // namespace riffle::measure
