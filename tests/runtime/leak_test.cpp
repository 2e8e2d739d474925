// Sessions come and go on one engine; nothing of them stays.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/toy.h"
#include "support/workers.h"

namespace riffle {
namespace {

std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}
std::size_t threads_now() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}
std::size_t resident_pages() {
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident;
}

TEST(Leak, AThousandStartsLeaveNothing) {
  test::run_world(test::Kind::shm, 2, [&](Engine& engine) {
    Collectives collectives(engine);
    std::size_t files = 0;
    std::size_t threads = 0;
    std::size_t pages = 0;
    for (int i = 0; i < 1000; ++i) {
      test::Toy toy(engine, i % 2 == 0 ? "asc-wfbp" : "sesgd:order=combine-then-adapt",
                    {.collectives = &collectives});
      toy.train(2);
      if (i == 100) {
        files = open_files();
        threads = threads_now();
        pages = resident_pages();
      }
    }
    EXPECT_LE(open_files(), files);
    EXPECT_LE(threads_now(), threads);
    // 900 sessions more: less than a page for each.
    EXPECT_LT(resident_pages(), pages + 400);
  });
}

}  // namespace
}  // namespace riffle
