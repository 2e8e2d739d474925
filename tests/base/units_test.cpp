#include "riffle/units.h"

#include <gmock/gmock.h>

#include "riffle/error.h"

namespace riffle {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Units, ParseEveryUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("50us", "t").count(), 50e-6);
  EXPECT_DOUBLE_EQ(parse_seconds("0.964ns", "t").count(), 0.964e-9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("10Gbps", "b").bytes_per_second, 1.25e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("10GB/s", "b").bytes_per_second, 1e10);
  EXPECT_EQ(parse_bytes("25MiB", "s"), mebibytes(25));
  EXPECT_EQ(parse_bytes("7MB", "s"), Bytes{7'000'000});
  EXPECT_DOUBLE_EQ(parse_percent("5%", "p"), 0.05);
}

TEST(Units, ANumberWithoutItsUnitSaysWhichFit) {
  EXPECT_THAT([] { parse_seconds("50", "latency"); },
              ThrowsMessage<UsageError>("latency: '50' has no unit (units that fit: ns us ms s)"));
  EXPECT_THAT([] { parse_bandwidth("10Gb", "bandwidth"); },
              ThrowsMessage<UsageError>(HasSubstr("unknown unit")));
  EXPECT_THAT([] { parse_seconds("-1ms", "latency"); },
              ThrowsMessage<UsageError>(HasSubstr("negative")));
  EXPECT_THROW(parse_seconds("nanms", "t"), UsageError);
  EXPECT_THROW(parse_seconds("1e999s", "t"), UsageError);
  EXPECT_THROW(parse_bandwidth("0Gbps", "b"), UsageError);
}

TEST(Units, SpellingsParseBackToTheSameValue) {
  for (const double value : {50e-6, 0.2, 7.04e-3, 1.0 / 3, 0.0, 12.5})
    EXPECT_EQ(parse_seconds(spell(Seconds(value)), "t").count(), value) << spell(Seconds(value));
  for (const double value : {0.05, 0.07, 0.01, 0.125, 1.0})
    EXPECT_EQ(parse_percent(spell_percent(value), "p"), value) << spell_percent(value);
  EXPECT_EQ(spell(Seconds(50e-6)), "50us");
  EXPECT_EQ(spell(Bandwidth{1.25e9}), "10Gbps");
  EXPECT_EQ(spell(mebibytes(25)), "25MiB");
}

TEST(Units, PrintLikeAPersonWould) {
  EXPECT_EQ(print(Seconds(0.0082)), "8.20 ms");
  EXPECT_EQ(print(Seconds(0)), "0 ns");
  EXPECT_EQ(print(Bytes{102'228'128}), "97.5 MiB");
  EXPECT_EQ(print(Bandwidth{1.25e9}), "10.0 Gbps");
}

}  // namespace
}  // namespace riffle
