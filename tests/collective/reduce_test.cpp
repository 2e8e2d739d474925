// The reductions against the definition, element by element, with the compiler's own 16-bit type,
// and against sums in long double; each variant the CPU has against the portable one, bit for bit.
#include "collective/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/half.h"
#include "riffle/random.h"

namespace riffle::collective {
namespace {

__extension__ using Float16 = _Float16;

std::size_t bytes_of(DType dtype) {
  return static_cast<std::size_t>(size_of(dtype).count);
}

// Round to nearest even by arithmetic: the neighbours are known, the nearer one wins.
std::uint16_t nearest_bf16(float value) {
  if (std::isnan(value)) return 0x7fc0;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto down = static_cast<std::uint16_t>(bits >> 16);
  const auto up = static_cast<std::uint16_t>(down + 1);
  const long double low = std::fabs(codec::widen_bf16(down));
  const long double high =
      std::isinf(codec::widen_bf16(up)) ? 0x1p128L : std::fabs(codec::widen_bf16(up));
  if (std::isinf(value)) return down;
  const long double magnitude = std::fabs(value);
  if (magnitude - low < high - magnitude) return down;
  if (magnitude - low > high - magnitude) return up;
  return (down & 1u) == 0 ? down : up;
}

double read(const std::byte* at, DType dtype) {
  const auto as = [at]<typename T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::f32:
      return as(float{});
    case DType::f64:
      return as(double{});
    case DType::f16:
      return static_cast<float>(as(Float16{}));
    default:  // bf16; integers have a test of their own
      return codec::widen_bf16(as(std::uint16_t{}));
  }
  return 0;
}

void write(std::byte* at, double value, DType dtype) {
  const auto put = [at](auto typed) { std::memcpy(at, &typed, sizeof typed); };
  switch (dtype) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
    case DType::f16:
      return put(static_cast<Float16>(static_cast<float>(value)));
    default:  // bf16; integers have a test of their own
      return put(nearest_bf16(static_cast<float>(value)));
  }
}

// The definition in reduce.h, one element at a time; volatile keeps every rounding.
template <typename Computed>
double defined_sum(const std::vector<double>& values, const std::vector<double>& weights,
                   double scale) {
  volatile Computed sum = 0;
  for (std::size_t k = 0; k < values.size(); ++k) {
    const Computed weight = weights.empty() ? Computed(1) : static_cast<Computed>(weights[k]);
    const volatile Computed product = weight * static_cast<Computed>(values[k]);
    if (k == 0)
      sum = product;
    else
      sum = sum + product;
  }
  return static_cast<Computed>(scale) * sum;
}

struct Case {
  DType dtype;
  std::size_t elements;
  std::size_t inputs;
  bool weighted;
  std::size_t misalignment;  // bytes
  bool in_place;             // out is the second input, or the only one
};

enum class Values { ordinary, extreme };

double draw(Random& random, Values values, DType dtype) {
  if (values == Values::ordinary) return random.normal();
  switch (random.below(8)) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return std::numeric_limits<double>::infinity();
    case 2:
      return -std::numeric_limits<double>::infinity();
    case 3:  // denormal in the type
      return random.normal() * (dtype == DType::f16   ? 0x1p-22
                                : dtype == DType::f64 ? 0x1p-1060
                                                      : 0x1p-140);
    case 4:  // overflows when added
      return random.uniform(0.6, 0.99) * (dtype == DType::f16   ? 65504.0
                                          : dtype == DType::f64 ? 1.7e308
                                                                : 3.3e38);
    case 5:
      return -0.0;
    default:
      return random.normal();
  }
}

class Data {
 public:
  Data(const Case& c, Values values, std::uint64_t seed) : case_(c) {
    Random random(seed);
    const std::size_t bytes = c.elements * bytes_of(c.dtype);
    for (std::size_t k = 0; k < c.inputs; ++k) {
      storage_.emplace_back(bytes + 64);
      for (std::size_t i = 0; i < c.elements; ++i)
        write(at(k, i), draw(random, values, c.dtype), c.dtype);
      inputs_.push_back(at(k, 0));
      if (c.weighted) weights_.push_back(random.uniform(0, 3));
    }
    storage_.emplace_back(bytes + 64);
    scale_ = random.below(2) == 0 ? 1.0 : 1.0 / static_cast<double>(c.inputs);
  }

  // The bytes of the result; checks that nothing beside it was written.
  std::vector<std::byte> run(std::string_view variant) {
    const auto before = storage_;
    const std::size_t target = case_.in_place ? case_.inputs / 2 : case_.inputs;
    const std::size_t bytes = case_.elements * bytes_of(case_.dtype);
    reduce_into_by(variant, at(target, 0), inputs_, weights_, scale_, case_.elements, case_.dtype);
    std::vector<std::byte> result(at(target, 0), at(target, 0) + bytes);
    std::memcpy(at(target, 0), before[target].data() + case_.misalignment, bytes);
    EXPECT_EQ(storage_, before) << "wrote outside the result";
    return result;
  }

  std::vector<double> values(std::size_t i) {
    std::vector<double> all;
    for (std::size_t k = 0; k < case_.inputs; ++k) all.push_back(read(at(k, i), case_.dtype));
    return all;
  }
  [[nodiscard]] const std::vector<double>& weights() const { return weights_; }
  [[nodiscard]] double scale() const { return scale_; }

 private:
  std::byte* at(std::size_t k, std::size_t i) {
    return storage_[k].data() + case_.misalignment + i * bytes_of(case_.dtype);
  }

  Case case_;
  std::vector<std::vector<std::byte>> storage_;
  std::vector<const std::byte*> inputs_;
  std::vector<double> weights_;
  double scale_ = 1;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::size_t elements : {0, 1, 7, 31, 32, 33, 100, 257, 1023})
      for (const std::size_t inputs : {1, 2, 3, 4, 9})
        for (const bool weighted : {false, true})
          for (const std::size_t misalignment : {0, 2, 5, 8})
            for (const bool in_place : {false, true})
              all.push_back({dtype, elements, inputs, weighted, misalignment, in_place});
  return all;
}

// Same bits, or both a NaN.
bool same(const std::byte* a, const std::byte* b, DType dtype) {
  return std::memcmp(a, b, bytes_of(dtype)) == 0 ||
         (std::isnan(read(a, dtype)) && std::isnan(read(b, dtype)));
}

class Reduce : public testing::TestWithParam<Values> {};

TEST_P(Reduce, IsWhatTheDefinitionSays) {
  std::uint64_t seed = 1;
  for (const Case& c : cases()) {
    Data data(c, GetParam(), ++seed);
    for (const std::string_view variant : reduce_variants()) {
      const auto result = data.run(variant);
      for (std::size_t i = 0; i < c.elements; ++i) {
        const auto values = data.values(i);
        std::byte expected[8];
        write(expected,
              c.dtype == DType::f64 ? defined_sum<double>(values, data.weights(), data.scale())
                                    : defined_sum<float>(values, data.weights(), data.scale()),
              c.dtype);
        ASSERT_TRUE(same(result.data() + i * bytes_of(c.dtype), expected, c.dtype))
            << variant << " " << name_of(c.dtype) << " element " << i << " of " << c.elements
            << ": " << read(result.data() + i * bytes_of(c.dtype), c.dtype) << " instead of "
            << read(expected, c.dtype);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Reduce, testing::Values(Values::ordinary, Values::extreme),
                         [](const auto& param) {
                           return param.param == Values::ordinary ? "ordinary" : "extreme";
                         });

TEST(ReduceAccuracy, StaysNearTheSumInLongDouble) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    // One rounding of the result, and one of the computing type per operation.
    const double unit = dtype == DType::f32   ? 0x1p-24
                        : dtype == DType::f64 ? 0x1p-53
                        : dtype == DType::f16 ? 0x1p-11
                                              : 0x1p-8;
    const double computing = dtype == DType::f64 ? 0x1p-53 : 0x1p-24;
    Data data({dtype, 1000, 5, true, 0, false}, Values::ordinary, 77);
    const auto result = data.run(reduce_variants().front());
    for (std::size_t i = 0; i < 1000; ++i) {
      const auto values = data.values(i);
      long double exact = 0;
      long double magnitude = 0;
      for (std::size_t k = 0; k < values.size(); ++k) {
        exact += static_cast<long double>(data.weights()[k]) * values[k];
        magnitude += std::fabs(static_cast<long double>(data.weights()[k]) * values[k]);
      }
      const long double error =
          std::fabs(read(result.data() + i * bytes_of(dtype), dtype) - exact * data.scale());
      EXPECT_LE(error, std::fabs(exact) * data.scale() * unit +
                           magnitude * data.scale() * 12 * computing + 0x1p-24L * unit);
    }
  }
}

TEST(Half, WidensEveryHalf) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto expected = static_cast<float>(std::bit_cast<Float16>(half));
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(codec::widen_f16(half))) << bits;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(codec::widen_f16(half)),
                std::bit_cast<std::uint32_t>(expected))
          << bits;
  }
}

TEST(Half, NarrowsLikeTheCompiler) {
  Random random(3);
  for (int i = 0; i < 2'000'000; ++i) {
    // Half of them near a tie of the f16 or bf16 grid.
    auto bits = static_cast<std::uint32_t>(random.next());
    if (i % 2 == 0) bits = (bits & ~0x1fffu) + 0x1000u + static_cast<std::uint32_t>(i % 3) - 1u;
    const float value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(codec::widen_f16(codec::narrow_f16(value))));
      ASSERT_TRUE(std::isnan(codec::widen_bf16(codec::narrow_bf16(value))));
    } else {
      ASSERT_EQ(codec::narrow_f16(value), std::bit_cast<std::uint16_t>(static_cast<Float16>(value)))
          << value;
      ASSERT_EQ(codec::narrow_bf16(value), nearest_bf16(value)) << value;
    }
  }
}

TEST(ReduceVariants, AWrongVariantIsAnsweredWithTheRightOnes) {
  std::byte out[4];
  const std::byte* const in[] = {out};
  EXPECT_THROW(reduce_into_by("sse9", out, in, {}, 1, 1, DType::f32), std::runtime_error);
}

TEST(ScaleInPlace, Scales) {
  std::vector<float> values(100, 3);
  scale_in_place(reinterpret_cast<std::byte*>(values.data()), 0.5, values.size(), DType::f32);
  EXPECT_EQ(values, std::vector<float>(100, 1.5));
}

}  // namespace
}  // namespace riffle::collective
