// Ways so long that one connection could not fill them: several carry one stream, and what comes
// by them is put together in order.
#include <filesystem>

#include "far_workers.h"

namespace riffle::test {
namespace {

int sockets_of_this_process() {
  int count = 0;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(each, gone).string().starts_with("socket:")) ++count;
  }
  return count;
}

TEST(LongWay, SeveralConnectionsCarryOneStream) {
  NEEDS_HOSTS();
  constexpr int hosts = 2;
  constexpr std::size_t count = 1'000'000;
  const FarWorld world(hosts, 1, std::chrono::milliseconds(40));
  world.run([&](Engine& engine) {
    Collectives collectives(engine);
    const Group all = Membership::all(hosts).ranks;
    int before = 0;
    for (int call = 0; call < 4; ++call) {
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(engine.rank())) % 1000);
      collectives.all_reduce(all, tensor_view(values), {.reduction = Reduction::sum});
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(values[i], static_cast<float>(i * 7 % 1000 + (i * 7 + 1) % 1000)) << i;
      if (call == 0) before = sockets_of_this_process();
    }
    // 80 ms of 1 Gbps are 10 MB, and a connection has a window of 3: four, of which one was there
    // when the first message went.
    EXPECT_GE(sockets_of_this_process(), 8) << "and " << before << " after the first call";
    // Both know the way by now: no less than the latency times what a call has shown of the rate.
    EXPECT_GT(engine.bytes_on_the_way(1 - engine.rank()), 100'000U);
  });
}

}  // namespace
}  // namespace riffle::test
