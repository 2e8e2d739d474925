#include "collective/reduce.h"

#include "collective/combine.h"
#include "collective/reduce_kernels.h"
#include "riffle/error.h"

namespace riffle::collective {
namespace {

const ReduceKernels& best_kernels() {
  const ReduceKernels* avx2 = avx2_reduce_kernels();
  return avx2 != nullptr ? *avx2 : portable_reduce_kernels();
}

const ReduceKernels& kernels_named(std::string_view variant) {
  if (variant == best_kernels().name) return best_kernels();
  if (variant == portable_reduce_kernels().name) return portable_reduce_kernels();
  usage_error("no reduction variant '{}' on this CPU; there are: {}", variant,
              fmt::join(reduce_variants(), ", "));
}

ReduceKernel kernel_for(const ReduceKernels& kernels, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return kernels.f32;
    case DType::f64:
      return kernels.f64;
    case DType::f16:
      return kernels.f16;
    case DType::bf16:
      return kernels.bf16;
    default:
      break;
  }
  usage_error("no weighted sum of {}", name_of(dtype));
}

void run(const ReduceKernels& kernels, std::byte* out, std::span<const std::byte* const> inputs,
         std::span<const double> weights, double scale, std::size_t elements, DType dtype) {
  RIFFLE_CHECK(!inputs.empty());
  if (!weights.empty()) RIFFLE_CHECK_EQ(weights.size(), inputs.size());
  kernel_for(kernels, dtype)({.out = out,
                              .inputs = inputs.data(),
                              .count = inputs.size(),
                              .weights = weights.empty() ? nullptr : weights.data(),
                              .scale = scale,
                              .begin = 0,
                              .end = elements});
}

}  // namespace

void combine_into(std::byte* out, std::span<const std::byte* const> inputs, const Combination& how,
                  std::size_t elements, DType dtype) {
  const bool sums = how.reduction == Reduction::sum || how.reduction == Reduction::mean;
  if (sums && !is_integer(dtype))
    return reduce_into(out, inputs, how.weights, how.scale, elements, dtype);
  combine_kernel_for(how.reduction, dtype)({.out = out,
                                            .inputs = inputs.data(),
                                            .count = inputs.size(),
                                            .weights = nullptr,
                                            .scale = 1,
                                            .begin = 0,
                                            .end = elements});
}

void reduce_into(std::byte* out, std::span<const std::byte* const> inputs,
                 std::span<const double> weights_or_empty, double scale, std::size_t elements,
                 DType dtype) {
  run(best_kernels(), out, inputs, weights_or_empty, scale, elements, dtype);
}

void scale_in_place(std::byte* values, double scale, std::size_t elements, DType dtype) {
  const std::byte* const input[] = {values};
  run(best_kernels(), values, input, {}, scale, elements, dtype);
}

std::vector<std::string_view> reduce_variants() {
  std::vector<std::string_view> names;
  if (const auto* avx2 = avx2_reduce_kernels()) names.emplace_back(avx2->name);
  names.emplace_back(portable_reduce_kernels().name);
  return names;
}

void reduce_into_by(std::string_view variant, std::byte* out,
                    std::span<const std::byte* const> inputs,
                    std::span<const double> weights_or_empty, double scale, std::size_t elements,
                    DType dtype) {
  run(kernels_named(variant), out, inputs, weights_or_empty, scale, elements, dtype);
}

}  // namespace riffle::collective
