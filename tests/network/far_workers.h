// Workers on the hosts of a lab.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <memory>
#include <string>

#include "lab/lab.h"
#include "riffle/collective.h"
#include "support/collective_reference.h"
#include "support/workers.h"

namespace riffle::test {

// Skips a test where there can be no hosts.
#define NEEDS_HOSTS()                                                                       \
  do {                                                                                      \
    if (geteuid() != 0) GTEST_SKIP() << "hosts of these tests need root";                   \
    if (const std::string reason = lab::missing(); !reason.empty()) GTEST_SKIP() << reason; \
  } while (false)

// An engine and its store.
struct FarEngine {
  std::unique_ptr<Store> store;
  std::unique_ptr<Engine> engine;
};

class FarWorld {
 public:
  // Ranks are placed host by host. Packets take as long as they do, or one_way.
  FarWorld(int hosts, int per_host, Seconds one_way = Seconds(0))
      : FarWorld(parse_cluster(
                     fmt::format("flat:{},latency={},bandwidth=10Gbps", hosts, spell(one_way))),
                 per_host) {}
  FarWorld(const Cluster& cluster, int per_host)
      : lab_({.cluster = cluster, .calibrate = cluster.latency(0, 1) > Seconds(0)}),
        per_host_(per_host),
        size_(cluster.size() * per_host),
        store_(lab::address_of(0), [this] { lab_.hosts().enter(0); }) {}

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const lab::Lab& lab() const { return lab_; }
  // A host's link, both ways.
  void cut(int host) const { lab_.change({.link = fmt::format("worker{}", host), .cut = true}); }
  void mend(int host) const {
    lab_.change({.link = fmt::format("worker{}", host), .repair = true});
  }
  // Every link loses so many of its packets, each way, and delays each by up to `jitter`.
  void disturb(double loss, Seconds jitter) const {
    lab_.change({.link = "worker*", .jitter = jitter, .loss = loss});
  }
  [[nodiscard]] int host_of(Rank rank) const { return rank / per_host_; }

  // For a worker's process: goes to the rank's host and joins.
  [[nodiscard]] FarEngine join(Rank rank, const EngineOptions& options = {}) const {
    lab_.hosts().enter(host_of(rank));
    FarEngine made;
    made.store = std::make_unique<Store>(store_.options());
    NetworkEngineOptions far;
    static_cast<EngineOptions&>(far) = options;
    far.store = made.store.get();
    far.job = "test";
    far.rank = rank;
    far.size = size_;
    made.engine = make_network_engine(far);
    return made;
  }

  // Runs body on every rank; a test fails when one of them throws or fails.
  void run(const std::function<void(Engine&)>& body, Seconds limit = Seconds(100),
           const EngineOptions& options = {}) const {
    Workers workers(size_, [&](Rank rank) {
      const FarEngine joined = join(rank, options);
      body(*joined.engine);
    });
    const auto codes = workers.wait_all(limit);
    for (std::size_t r = 0; r < codes.size(); ++r) EXPECT_EQ(codes[r], 0) << "rank " << r;
  }

 private:
  lab::Lab lab_;
  int per_host_;
  int size_;
  StoreProcess store_;
};

// Memory that forked workers share with the test.
template <typename T>
class Shared {
 public:
  Shared()
      : value_(new(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0)) T{}) {}
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  T* value_;
};

inline std::int64_t nanoseconds_now() {
  return Clock::now().time_since_epoch().count();
}

// Random collectives over random groups, each checked against float64.
inline void run_random_trials(const FarWorld& world, int trials, Seconds limit) {
  world.run(
      [&](Engine& engine) {
        Collectives collectives(engine);
        Random random(11);
        for (int i = 0; i < trials; ++i) {
          Trial trial = random_trial(random, world.size(), i % 50 == 0 ? 400'000 : 5'000);
          trial.places = 1 + i % 3;
          trial.lane = i % 4;
          if (trial.group.contains(engine.rank())) check(engine, collectives, i % 7 == 0, trial);
          if (testing::Test::HasFailure()) return;
        }
      },
      limit);
}

// A rank waits for a peer that computes for so long.
inline void compute_for(Seconds time, const EngineOptions& options) {
  const FarWorld world(2, 1);
  const auto body = [&](Engine& engine) {
    Collectives collectives(engine);
    std::vector<float> values(100'000, 1);
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
    volatile double sum = 0;
    const Deadline end = after(time);
    while (engine.rank() == 1 && Clock::now() < end) sum = sum + 1;
    collectives.all_reduce(Group({0, 1}), tensor_view(values));
  };
  world.run(body, Seconds(100), options);
}

}  // namespace riffle::test
