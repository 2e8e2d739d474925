// Bytes that the switch has counted are those of the cost model: nothing takes a short cut between
// emulated hosts, and no protocol sends twice.
#include "far_workers.h"
#include "riffle/cost.h"

namespace riffle::test {
namespace {

constexpr int hosts = 4;
constexpr std::size_t count = 200'000;  // floats

// What hosts send, from the start of a world to its end.
std::int64_t bytes_sent(Algorithm algorithm, int calls, Wire wire = Wire::f32) {
  const FarWorld world(hosts, 1);
  world.run([&](Engine& engine) {
    Collectives collectives(engine);
    std::vector<float> values(count);
    for (int i = 0; i < calls; ++i)
      collectives.all_reduce(Membership::all(hosts).ranks, tensor_view(values),
                             {.algorithm = algorithm, .rounding = {.wire = wire}});
  });
  std::int64_t sum = 0;
  const auto counters = world.lab().network().counters();
  for (int host = 0; host < hosts; ++host)
    sum += counters[static_cast<std::size_t>(2 * host)].bytes;
  return sum;
}

TEST(Traffic, IsWhatTheCostModelSays) {
  NEEDS_HOSTS();
  constexpr int calls = 20;
  const CostModel cost(parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps"));
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling,
                                    Algorithm::recursive_doubling, Algorithm::direct}) {
    const Exchange exchange{.group = Membership::all(hosts).ranks, .algorithm = algorithm};
    const double model = cost.traffic(exchange, Bytes{4 * count}).bytes * hosts * calls;
    // Meeting and heartbeats are in both.
    const auto measured =
        static_cast<double>(bytes_sent(algorithm, calls + 1) - bytes_sent(algorithm, 1));
    std::printf("  %-20s %.4f of the model\n", std::string(name_of(algorithm)).c_str(),
                measured / model);
    EXPECT_GT(measured, model * 0.999) << name_of(algorithm);
    EXPECT_LT(measured, model * 1.01) << name_of(algorithm);
  }
}

// Rounded values take the bytes that the model says: half, and little more than a quarter.
TEST(Traffic, OfRoundedValuesIsWhatTheCostModelSays) {
  NEEDS_HOSTS();
  constexpr int calls = 20;
  const auto more = [&](Wire wire) {
    return static_cast<double>(bytes_sent(Algorithm::direct, calls + 1, wire) -
                               bytes_sent(Algorithm::direct, 1, wire));
  };
  const CostModel cost(parse_cluster("flat:4,latency=1ms,bandwidth=1Gbps"));
  const Exchange exchange{.group = Membership::all(hosts).ranks, .algorithm = Algorithm::direct};
  const double whole = more(Wire::f32);
  for (const auto& [wire, most] : {std::pair{Wire::bf16, 0.505}, std::pair{Wire::int8, 0.27}}) {
    const double measured = more(wire);
    const double model =
        cost.traffic(exchange, wire_bytes(Bytes{4 * count}, DType::f32, wire)).bytes * hosts *
        calls;
    std::printf("  %-6s %.4f of the model, %.4f of f32\n", std::string(name_of(wire)).c_str(),
                measured / model, measured / whole);
    EXPECT_GT(measured, model * 0.999) << name_of(wire);
    EXPECT_LT(measured, model * 1.01) << name_of(wire);
    EXPECT_LT(measured, whole * most) << name_of(wire);
  }
}

}  // namespace
}  // namespace riffle::test
