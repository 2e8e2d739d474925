// The codec against its definition, with the compiler's own 16-bit type; each variant the CPU has
// against the portable one, bit for bit.
#include "codec/codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "riffle/random.h"

namespace riffle::codec {
namespace {

__extension__ using Float16 = _Float16;

constexpr Wire kWires[] = {Wire::bf16, Wire::f16, Wire::int8};
constexpr std::size_t kCounts[] = {0, 1, 7, 16, 255, 256, 257, 1000, 4099};

// Of many magnitudes, with zeros among them.
std::vector<float> some_values(std::size_t count, std::uint64_t seed, int span = 8) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values)
    value = random.below(10) == 0
                ? 0.0f
                : static_cast<float>((random.uniform() - 0.5) *
                                     std::pow(2.0, static_cast<double>(random.below(span)) - 4));
  return values;
}

std::vector<float> decoded(Wire wire, std::vector<float> values) {
  std::vector<std::byte> bytes(encoded_bytes(wire, values.size()));
  encode(wire, values.data(), values.size(), bytes.data());
  std::vector<float> result(values.size());
  decode(wire, bytes.data(), result.size(), result.data());
  return result;
}

std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> all;
  for (const float value : values) all.push_back(std::bit_cast<std::uint32_t>(value));
  return all;
}

TEST(Codec, TakesTheBytesItSays) {
  EXPECT_EQ(encoded_bytes(Wire::f32, 1000), 4000u);
  EXPECT_EQ(encoded_bytes(Wire::bf16, 1000), 2000u);
  EXPECT_EQ(encoded_bytes(Wire::f16, 1000), 2000u);
  EXPECT_EQ(encoded_bytes(Wire::int8, 1000), 1016u);
  EXPECT_EQ(encoded_bytes(Wire::int8, 256), 260u);
  EXPECT_EQ(encoded_bytes(Wire::int8, 0), 0u);
}

TEST(Codec, HalvesAreTheNearest) {
  const auto values = some_values(4099, 1, 40);
  const auto result = decoded(Wire::f16, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(result[i], static_cast<float>(static_cast<Float16>(values[i]))) << values[i];
}

TEST(Codec, StaysWithinItsBound) {
  for (const Wire wire : kWires)
    for (const std::size_t count : kCounts) {
      const auto values = some_values(count, count);
      const auto result = decoded(wire, values);
      for (std::size_t i = 0; i < count; ++i) {
        double size = std::fabs(values[i]);
        if (wire == Wire::int8)
          for (std::size_t k = i / kBlock * kBlock; k < std::min(count, (i / kBlock + 1) * kBlock);
               ++k)
            size = std::max(size, static_cast<double>(std::fabs(values[k])));
        if (wire == Wire::f16) size = std::max(size, 0x1p-14);
        ASSERT_LE(std::fabs(values[i] - result[i]), size * error_bound(wire) * (1 + 1e-6))
            << name_of(wire) << ' ' << i << " of " << count << ": " << values[i];
      }
    }
}

TEST(Codec, WhatWasDecodedStaysAsItIs) {
  for (const Wire wire : kWires)
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      const auto once = decoded(wire, some_values(600, seed));
      ASSERT_EQ(bits(decoded(wire, once)), bits(once)) << name_of(wire) << ' ' << seed;
    }
}

TEST(Codec, TheSenderHoldsWhatTheReceiverGetsAndKnowsWhatIsLost) {
  for (const Wire wire : kWires) {
    const auto before = some_values(1000, 3);
    auto values = before;
    std::vector<std::byte> bytes(encoded_bytes(wire, values.size()));
    std::vector<float> lost(values.size(), 1);
    encode(wire, values.data(), values.size(), bytes.data(), {lost.data(), 4});
    EXPECT_EQ(bits(values), bits(decoded(wire, before)));
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_FLOAT_EQ(lost[i], 1 + 4 * (before[i] - values[i]));
    auto rounded = before;
    round(wire, rounded.data(), rounded.size());
    EXPECT_EQ(bits(rounded), bits(values));
  }
}

TEST(Codec, EveryVariantGivesTheSameBits) {
  for (const Wire wire : kWires)
    for (const std::size_t count : kCounts)
      for (const std::string_view variant : variants()) {
        auto expected = some_values(count, count + 7, 60);
        auto values = expected;
        std::vector<float> lost(count);
        std::vector<float> expected_lost(count);
        // One byte off, as in a message of several blocks.
        std::vector<std::byte> bytes(encoded_bytes(wire, count) + 1);
        std::vector<std::byte> expected_bytes(bytes.size());
        encode_by("portable", wire, expected.data(), count, expected_bytes.data() + 1,
                  {expected_lost.data(), 3});
        encode_by(variant, wire, values.data(), count, bytes.data() + 1, {lost.data(), 3});
        EXPECT_EQ(bytes, expected_bytes) << variant << ' ' << name_of(wire) << ' ' << count;
        EXPECT_EQ(bits(values), bits(expected));
        EXPECT_EQ(bits(lost), bits(expected_lost));
        decode_by(variant, wire, bytes.data() + 1, count, values.data());
        EXPECT_EQ(bits(values), bits(expected));
      }
  EXPECT_THROW(encode_by("mmx", Wire::int8, nullptr, 0, nullptr), std::exception);
}

TEST(Codec, WhatIsNotFiniteIsPassedOnAndNeverLost) {
  for (const Wire wire : kWires)
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      auto values = some_values(300, 5);
      values[10] = bad;
      std::vector<float> lost(values.size());
      round(wire, values.data(), values.size(), {lost.data(), 1});
      EXPECT_FALSE(std::isfinite(values[10])) << name_of(wire);
      for (const float each : lost) ASSERT_TRUE(std::isfinite(each));
      ASSERT_TRUE(std::isfinite(values[280])) << "another block";
    }
  float large = 1e5f;
  round(Wire::f16, &large, 1);
  EXPECT_TRUE(std::isinf(large));
}

TEST(Codec, TinyValuesAreLostButKept) {
  std::vector<float> values(10, 1e-35f);
  std::vector<float> lost(10);
  round(Wire::int8, values.data(), values.size(), {lost.data(), 1});
  EXPECT_EQ(values, std::vector<float>(10, 0.0f));
  EXPECT_EQ(lost, std::vector<float>(10, 1e-35f));
}

}  // namespace
}  // namespace riffle::codec
