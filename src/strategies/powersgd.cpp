// PowerSGD: gradients travel as two narrow factors, by one step of power iteration from those of
// the step before; what that loses is sent later.
// Vogels, Karimireddy, Jaggi, NeurIPS 2019, arXiv:1905.13727; in the form of torch's powerSGD_hook.
// Cost per step: two all-reduces of rank * (rows + columns) values for a matrix, vectors whole.
#include "riffle/error.h"
#include "strategies/builtin.h"
#include "strategies/gradient_average.h"
#include "strategies/merge.h"

namespace riffle::strategies {
namespace {

using Factor = LowRank::Factor;

// What compressing the gradients of small networks costs; docs/converge.md says how it was
// measured.
constexpr double kWorth = 0.88;

// Two all-reduces, of half the bytes each.
Curve twice(const Curve& once) {
  std::vector<Curve::Piece> pieces = once.pieces();
  for (Curve::Piece& piece : pieces) {
    piece.from = piece.from * 2;
    piece.cost.a *= 2;
  }
  return Curve(std::move(pieces));
}

class PowerSgd : public Strategy {
 public:
  explicit PowerSgd(const Options& options)
      : rank_(static_cast<int>(options.integer("rank", 1))), start_(options.integer("start", 0)) {
    if (options.wire() != Wire::f32)
      usage_error("{}: factors are not rounded; use wire=f32", options.where("wire"));
    if (options.given("feedback"))
      usage_error("{}: what factors lose is always sent later", options.where("feedback"));
  }

  [[nodiscard]] BucketPlan buckets(const Trace& trace, const CostModel& cost,
                                   const World& world) const override {
    auto layers = ready_layers(trace, Wire::f32);
    const BucketPlan each = bucket_per_layer(trace);
    bool factored = false;
    for (std::size_t i = 0; i < each.size(); ++i) {
      const Bytes right = bytes(each[i], Factor::right);
      layers[i].bytes = bytes(each[i], Factor::left) + right;
      factored |= right.count > 0;
    }
    const Curve& curve = cost.curve(world.ranks());
    return make_buckets(trace, merge_optimal(layers, factored ? twice(curve) : curve));
  }

  [[nodiscard]] Program program(Step step, const World& world,
                                const BucketPlan& buckets) const override {
    Program whole = average_gradients(world, buckets, Start::bucket_ready);
    if (step < start_) return whole;
    Program program;
    for (const Exchange& exchange : whole.exchanges) {
      if (bytes(buckets[exchange.bucket], Factor::right).count == 0) {
        program.add(exchange);
        continue;
      }
      for (const Factor factor : {Factor::left, Factor::right}) {
        program.add(exchange);
        program.exchanges.back().low_rank = {factor, rank_};
      }
    }
    return program;
  }

  [[nodiscard]] Traits traits(const World& world) const override {
    return {.warm_up = start_, .effective_step = world.size() > 1 ? kWorth : 1};
  }

 private:
  [[nodiscard]] Bytes bytes(const Bucket& bucket, Factor factor) const {
    return exchanged_bytes(bucket, {.low_rank = {factor, rank_}}, DType::f32);
  }

  int rank_;
  Step start_;
};

}  // namespace

StrategyInfo powersgd() {
  return {
      .name = "powersgd",
      .summary = "gradients as two narrow factors; what that loses is sent later",
      .paper = "arXiv:1905.13727",
      .options = {{"rank", "4|R", "the most columns of a factor"},
                  {"start", "2|N", "steps of plain all-reduce before the first factors"}},
      .page = {.idea = "The gradient of a layer is a matrix M, the first dimension of its shape by "
                       "all others. Instead of it P = M Q and Q = M^T P travel, `rank` columns "
                       "each, P made orthonormal in between; everybody continues with P Q^T. Q is "
                       "kept from step to step, so that the factors follow the gradient, and what "
                       "they lost is added to the next one (error feedback). Vectors, and matrices "
                       "whose factors would not be less than half of them, travel whole with P. "
                       "Neighbouring layers are merged as in [mg-wfbp](mg-wfbp.md), by the bytes "
                       "of their factors. It is torch's `powerSGD_hook`, on any engine.",
               .when = "A network so slow that gradients do not hide under backward, and layers "
                       "that are large matrices. It is not exact: compare its accuracy, and let "
                       "the first tenth of the steps travel whole (`start`; torch's hook takes "
                       "1000 by default and 2 at least). The factors are work for the processor, "
                       "which `plan` and `simulate` do not count, and `plan` takes a step for a "
                       "whole one, which was not measured. They need the shapes of a model: a "
                       "trace without `\"shape\"` travels whole."},
      .traffic = {{.options = "algorithm=ring",
                   .bytes = "2(N-1)/N*rank*3/4250",
                   .messages = "4(N-1)*B",
                   .note = "rows and columns of the example's matrices are 3/4250 of their "
                           "elements; after `start`"}},
      .make = [](const Options& options) { return std::make_unique<PowerSgd>(options); }};
}

}  // namespace riffle::strategies
