#include "distributed/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace riffle::distributed {
namespace {

TEST(Queue, RunsJobsInOrderAndAllBeforeItCloses) {
  Queue queue;
  std::vector<int> seen;
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(queue.add([&seen, i] { seen.push_back(i); }));
  queue.close();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
  EXPECT_FALSE(queue.add([] {}));
}

TEST(Queue, RunsOnTheCallersThreadOnlyWhenNothingElseDoes) {
  Queue queue;
  std::thread::id ran;
  EXPECT_TRUE(queue.run_here([&] { ran = std::this_thread::get_id(); }));
  EXPECT_EQ(ran, std::this_thread::get_id());
  std::atomic<bool> go = false;
  queue.add([&] { go.wait(false); });
  EXPECT_FALSE(queue.run_here([] { FAIL(); }));
  go = true;
  go.notify_all();
}

}  // namespace
}  // namespace riffle::distributed
