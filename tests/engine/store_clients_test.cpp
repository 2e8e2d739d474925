// A thousand clients in ten processes, all connected and waiting at once, with strangers knocking.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "engine/store/socket.h"
#include "riffle/store.h"
#include "support/workers.h"

namespace riffle {
namespace {

constexpr int processes = 10;
constexpr int threads_each = 100;
constexpr int clients = processes * threads_each;
const Seconds plenty(90);

void meet(const StoreOptions& options) {
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_each; ++t)
    threads.emplace_back([&] {
      Store store(options);
      store.add("arrived", 1, after(plenty));
      EXPECT_EQ(store.wait("go", after(plenty)), "now");
      store.add("left", 1, after(plenty));
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(StoreClients, AThousandWaitTogetherWhileStrangersAreRefused) {
  int address_pipe[2];
  ASSERT_EQ(pipe(address_pipe), 0);
  // The workers are forked before the server's thread exists.
  test::Workers workers(processes, [&](Rank) {
    int port = 0;
    if (read(address_pipe[0], &port, sizeof port) == sizeof port)
      meet({.address = {"127.0.0.1", port}, .token = "secret", .connect_timeout = plenty});
  });
  std::atomic<int> lines = 0;
  const StoreServer server({.token = "secret", .log = [&](const std::string&) { ++lines; }});
  const int port = server.address().port;
  for (int i = 0; i < processes; ++i)
    ASSERT_EQ(write(address_pipe[1], &port, sizeof port), ssize_t{sizeof port});

  Store store({.address = server.address(), .token = "secret"});
  const Deadline deadline = after(plenty);
  int most = 0;
  for (std::optional<std::string> known = "0"; known != std::to_string(clients);) {
    known = store.wait_change("arrived", known, deadline);
    std::string problem;
    const Descriptor stranger = store::connect_to(server.address(), deadline, problem);
    send(stranger.get(), "garbage!", 8, MSG_NOSIGNAL);
    most = std::max(most, server.clients());
  }
  EXPECT_GE(most, clients) << "all were connected at once";
  store.set("go", "now", deadline);
  EXPECT_EQ(workers.wait_all(plenty), std::vector<int>(processes, 0));
  EXPECT_EQ(store.get("left", deadline), std::to_string(clients));
  EXPECT_GE(lines.load(), 1);
  close(address_pipe[0]);
  close(address_pipe[1]);
}

}  // namespace
}  // namespace riffle
