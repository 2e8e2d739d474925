#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "converge/kernels.h"
#include "converge/problems.h"
#include "converge/shards.h"

namespace riffle::convergence {
namespace {

// Weights of a layer lie in the order inputs x outputs, then its biases.
struct LayerPlace {
  std::size_t inputs;
  std::size_t outputs;
  std::size_t weights;  // where they begin
  [[nodiscard]] std::size_t biases() const { return weights + inputs * outputs; }
  [[nodiscard]] std::size_t end() const { return biases() + outputs; }
};

class Network : public LearningProblem {
 public:
  Network(Data data, const std::vector<std::size_t>& sizes, const ProblemOptions& options,
          int workers)
      : data_(std::move(data)),
        options_(options),
        shards_(data_.train.labels, workers, options.batch, parse_split(options.split),
                options.seed) {
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
      layers_.push_back({sizes[i], sizes[i + 1], i == 0 ? 0 : layers_.back().end()});
    values_.resize(sizes.size());
  }

  [[nodiscard]] std::string describe() const override {
    std::string sizes = std::to_string(layers_.front().inputs);
    for (const LayerPlace& layer : layers_) sizes += fmt::format("-{}", layer.outputs);
    return fmt::format("{} on {}, {} samples, {}", sizes, data_.name, data_.train.size(),
                       options_.split);
  }

  // Each tensor is a layer of the trace, as a session sees it.
  [[nodiscard]] Trace trace() const override {
    Trace trace{.model = options_.problem,
                .dtype = DType::f64,
                .batch = options_.batch,
                .layers = {},
                .source = "made up"};
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const LayerPlace& layer = layers_[i];
      trace.layers.push_back(
          {fmt::format("weight{}", i),
           static_cast<std::int64_t>(layer.inputs * layer.outputs),
           Seconds(1e-3),
           Seconds(2e-3),
           {static_cast<std::int64_t>(layer.inputs), static_cast<std::int64_t>(layer.outputs)}});
      trace.layers.push_back({fmt::format("bias{}", i), static_cast<std::int64_t>(layer.outputs),
                              Seconds(1e-5), Seconds(1e-5)});
    }
    return trace;
  }

  [[nodiscard]] Step epoch() const override { return shards_.epoch(); }

  // As torch initializes linear layers: uniform within 1/sqrt(inputs).
  [[nodiscard]] std::vector<double> start() const override {
    Random random(options_.seed, 41);
    std::vector<double> x(layers_.back().end());
    for (const LayerPlace& layer : layers_) {
      const double bound = 1 / std::sqrt(static_cast<double>(layer.inputs));
      for (std::size_t k = layer.weights; k < layer.end(); ++k)
        x[k] = random.uniform(-bound, bound);
    }
    return x;
  }

  std::span<const int> batch(int worker, Step step) override { return shards_.batch(worker, step); }

  double gradient(int worker, Step step, const double* x, double* gradient) override {
    const auto samples = batch(worker, step);
    forward(data_.train, samples, x);
    const double loss = take_loss(data_.train, samples);
    backward(samples.size(), x, gradient);
    return loss;
  }

  Evaluation evaluate(const double* x, Thorough thorough) override {
    Evaluation found;
    std::size_t right = 0;
    in_blocks(data_.test, [&](std::span<const int> samples) {
      forward(data_.test, samples, x);
      right += hits(data_.test, samples);
      found.test_loss += take_loss(data_.test, samples) * static_cast<double>(samples.size()) /
                         static_cast<double>(data_.test.size());
    });
    found.accuracy = static_cast<double>(right) / static_cast<double>(data_.test.size());
    if (thorough == Thorough::no) return found;
    std::vector<double> sum(layers_.back().end());
    std::vector<double> part(sum.size());
    in_blocks(data_.train, [&](std::span<const int> samples) {
      const double share =
          static_cast<double>(samples.size()) / static_cast<double>(data_.train.size());
      forward(data_.train, samples, x);
      found.loss += share * take_loss(data_.train, samples);
      backward(samples.size(), x, part.data());
      kernels().add(sum.data(), share, part.data(), sum.size());
    });
    for (const double value : sum) found.gradient_norm_squared += value * value;
    return found;
  }

 private:
  template <typename Visit>
  static void in_blocks(const Samples& all, const Visit& visit) {
    constexpr int kSamplesAtOnce = 250;
    std::vector<int> samples;
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      samples.push_back(i);
      if (samples.size() < kSamplesAtOnce && i + 1 < static_cast<int>(all.size())) continue;
      visit(samples);
      samples.clear();
    }
  }

  // values_[l] are the inputs of layer l, those behind the last layer its outputs.
  void forward(const Samples& from, std::span<const int> samples, const double* x) {
    const std::size_t width = data_.width;
    values_[0].resize(samples.size() * width);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const float* features = from.features.data() + static_cast<std::size_t>(samples[i]) * width;
      std::copy_n(features, width, values_[0].data() + i * width);
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const auto& [inputs, outputs, weights] = layers_[l];
      std::vector<double>& out = values_[l + 1];
      out.resize(samples.size() * outputs);
      kernels().multiply(samples.size(), outputs, inputs, {values_[l].data(), inputs, 1},
                         x + weights, out.data());
      const bool last = l + 1 == layers_.size();
      for (std::size_t i = 0; i < samples.size(); ++i) {
        double* row = out.data() + i * outputs;
        for (std::size_t k = 0; k < outputs; ++k) {
          row[k] += x[layers_[l].biases() + k];
          if (!last) row[k] = std::max(row[k], 0.0);
        }
      }
    }
  }

  [[nodiscard]] std::size_t hits(const Samples& from, std::span<const int> samples) const {
    const std::size_t classes = layers_.back().outputs;
    std::size_t right = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const double* row = values_.back().data() + i * classes;
      right += std::max_element(row, row + classes) - row == from.labels[samples[i]] ? 1U : 0U;
    }
    return right;
  }

  // The mean loss; leaves its gradient by the outputs in values_.back().
  double take_loss(const Samples& from, std::span<const int> samples) {
    const std::size_t classes = layers_.back().outputs;
    const double share = 1 / static_cast<double>(samples.size());
    double loss = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      double* row = values_.back().data() + i * classes;
      const double most = *std::max_element(row, row + classes);
      const int label = from.labels[samples[i]];
      double sum = 0;
      loss += share * (most - row[label]);
      for (std::size_t k = 0; k < classes; ++k) sum += row[k] = std::exp(row[k] - most);
      loss += share * std::log(sum);
      for (std::size_t k = 0; k < classes; ++k) row[k] *= share / sum;
      row[label] -= share;
    }
    return loss;
  }

  // From the outputs' gradient, which lies in values_.back(), layer by layer.
  void backward(std::size_t batch, const double* x, double* gradient) {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      const auto& [inputs, outputs, weights] = layers_[l];
      const double* slopes = values_[l + 1].data();
      kernels().multiply(inputs, outputs, batch, {values_[l].data(), 1, inputs}, slopes,
                         gradient + weights);
      double* biases = gradient + layers_[l].biases();
      std::fill_n(biases, outputs, 0.0);
      for (std::size_t i = 0; i < batch; ++i)
        kernels().add(biases, 1, slopes + i * outputs, outputs);
      if (l > 0) pass_back(batch, layers_[l], x);
    }
  }

  // The gradient by a layer's inputs takes their place; a ReLU that was closed stays so.
  void pass_back(std::size_t batch, const LayerPlace& layer, const double* x) {
    const auto& [inputs, outputs, weights] = layer;
    const std::size_t l = &layer - layers_.data();
    transposed_.resize(inputs * outputs);
    for (std::size_t i = 0; i < inputs; ++i)
      for (std::size_t k = 0; k < outputs; ++k)
        transposed_[k * inputs + i] = x[weights + i * outputs + k];
    passed_.resize(batch * inputs);
    kernels().multiply(batch, inputs, outputs, {values_[l + 1].data(), outputs, 1},
                       transposed_.data(), passed_.data());
    for (std::size_t i = 0; i < passed_.size(); ++i)
      values_[l][i] = values_[l][i] > 0 ? passed_[i] : 0;
  }

  Data data_;
  ProblemOptions options_;
  Shards shards_;
  std::vector<LayerPlace> layers_;
  std::vector<std::vector<double>> values_;
  std::vector<double> transposed_;
  std::vector<double> passed_;
};

}  // namespace

std::unique_ptr<LearningProblem> make_network(Data data, std::vector<std::size_t> sizes,
                                              const ProblemOptions& options, int workers) {
  return std::make_unique<Network>(std::move(data), sizes, options, workers);
}

}  // namespace riffle::convergence
