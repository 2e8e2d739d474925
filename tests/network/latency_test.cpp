// What a collective costs on a slow path is its algorithm's count of latencies. A rendezvous, a
// hidden handshake or an acknowledgement in between would show as one latency more.
#include <algorithm>
#include <thread>

#include "far_workers.h"
#include "support/sanitized.h"

namespace riffle::test {
namespace {

constexpr int hosts = 4;
constexpr int rounds = 5;
constexpr int warm_up = 5;  // connects, and opens TCP's windows to the size of a message
constexpr auto one_way = std::chrono::milliseconds(30);
constexpr auto slot = std::chrono::milliseconds(230);  // longer than the longest call

struct Case {
  Algorithm algorithm;
  int latencies;
};
const Case cases[] = {{Algorithm::direct, 2},
                      {Algorithm::recursive_doubling, 2},
                      {Algorithm::halving_doubling, 4},
                      {Algorithm::ring, 6}};
const std::size_t sizes[] = {1 << 10, 32 << 10};  // elements of four bytes

struct Times {
  std::int64_t begin;
  std::atomic<std::int64_t> end[4][2][rounds];
};

// All begin at the same moment of the machine's clock.
void call_at(Collectives& collectives, Clock::time_point start, Algorithm algorithm,
             std::vector<float>& values, std::atomic<std::int64_t>& end) {
  std::this_thread::sleep_until(start);
  collectives.all_reduce(Membership::all(hosts).ranks, tensor_view(values),
                         {.algorithm = algorithm});
  const std::int64_t took = (Clock::now() - start).count();
  std::int64_t seen = end.load();
  while (took > seen && !end.compare_exchange_weak(seen, took)) continue;
}

TEST(Latency, ACollectiveTakesItsCountOfLatencies) {
  if (sanitized) GTEST_SKIP() << "what a sanitizer adds would be taken for latency";
  NEEDS_HOSTS();
  Shared<Times> times;
  const FarWorld world(hosts, 1, one_way);
  world.run([&](Engine& engine) {
    Collectives collectives(engine);
    const Group all = Membership::all(hosts).ranks;
    std::vector<float> values(sizes[1]);
    for (int i = 0; i < warm_up; ++i)
      for (const Case& each : cases)
        collectives.all_reduce(all, tensor_view(values), {.algorithm = each.algorithm});
    if (engine.rank() == 0) times->begin = (Clock::now() + 2 * slot).time_since_epoch().count();
    collectives.barrier(all);
    Clock::time_point start{std::chrono::nanoseconds(times->begin)};
    for (std::size_t c = 0; c < std::size(cases); ++c)
      for (std::size_t s = 0; s < std::size(sizes); ++s)
        for (int round = 0; round < rounds; ++round, start += slot) {
          std::vector<float> part(sizes[s]);
          call_at(collectives, start, cases[c].algorithm, part, times->end[c][s][round]);
        }
  });
  for (std::size_t c = 0; c < std::size(cases); ++c)
    for (std::size_t s = 0; s < std::size(sizes); ++s) {
      std::vector<std::int64_t> took;
      for (const auto& each : times->end[c][s]) took.push_back(each.load());
      std::ranges::sort(took);
      const auto in_latencies = [](std::int64_t time) {
        return static_cast<double>(time) /
               static_cast<double>(std::chrono::nanoseconds(one_way).count());
      };
      // The best of them: a machine that is busy adds to the others, a protocol adds to all.
      const double latencies = in_latencies(took.front());
      std::printf("  %-20s %7zu bytes  %.2f latencies, median %.2f (%d expected)\n",
                  std::string(name_of(cases[c].algorithm)).c_str(), sizes[s] * 4, latencies,
                  in_latencies(took[rounds / 2]), cases[c].latencies);
      EXPECT_GT(latencies, cases[c].latencies * 0.99);
      EXPECT_LT(latencies, cases[c].latencies * 1.15);
    }
}

}  // namespace
}  // namespace riffle::test
