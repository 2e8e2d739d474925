#include "report/table.h"

#include <gtest/gtest.h>

namespace riffle::report {
namespace {

const Table kTable{{{"name", false}, {"time"}}, {{"ring", "1.20 µs"}, {"two,level", "13 ms"}}};

TEST(Table, AlignsWordsLeftAndNumbersRight) {
  EXPECT_EQ(print_table(kTable),
            "name          time\n"
            "---------  -------\n"
            "ring       1.20 µs\n"
            "two,level    13 ms\n");
}

TEST(Table, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(print_csv(kTable), "name,time\nring,1.20 µs\n\"two,level\",13 ms\n");
}

}  // namespace
}  // namespace riffle::report
