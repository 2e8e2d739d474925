#include "model/zoo/net.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "riffle/error.h"

namespace riffle::zoo {
namespace {

std::int64_t windows(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  RIFFLE_CHECK(in + 2 * pad >= kernel);
  return (in + 2 * pad - kernel) / stride + 1;
}

}  // namespace

// A layer that is a matrix product: forward, and two products of the same size backward, of which
// the one by the input is not needed at the start of the network.
void Net::product(std::string name, std::int64_t elements, std::vector<std::int64_t> weights,
                  Shape in, Shape out) {
  const std::int64_t count =
      std::accumulate(weights.begin(), weights.end(), std::int64_t{1}, std::multiplies{});
  const Work work{.multiply_adds = static_cast<double>(count * out.positions()),
                  .values = static_cast<double>(in.values() + out.values()),
                  .fixed_values = static_cast<double>(count)};
  ops_.push_back(
      {std::move(name), elements, work, {work, in.gradient ? work : Work{}}, std::move(weights)});
}

// An operation that computes next to nothing: only its memory traffic counts.
Shape Net::moves(std::string name, std::int64_t elements, double forward, double backward,
                 Shape out) {
  out.gradient = true;
  ops_.push_back({std::move(name), elements, {.values = forward}, {Work{.values = backward}}});
  return out;
}

Shape Net::conv(std::string name, Shape in, const Conv& conv) {
  const std::int64_t kernel_w = conv.kernel_w > 0 ? conv.kernel_w : conv.kernel;
  const std::int64_t pad_w = conv.pad_w >= 0 ? conv.pad_w : conv.pad;
  const Shape out{conv.out, windows(in.height, conv.kernel, conv.stride, conv.pad),
                  windows(in.width, kernel_w, conv.stride, pad_w)};
  const std::int64_t weights = in.channels * conv.out * conv.kernel * kernel_w;
  product(std::move(name), weights + (conv.bias ? conv.out : 0),
          {conv.out, in.channels, conv.kernel, kernel_w}, in, out);
  return out;
}

Shape Net::linear(std::string name, Shape in, std::int64_t out, bool bias) {
  const Shape result{out, in.height, in.width};
  const std::int64_t weights = in.channels * out;
  product(std::move(name), weights + (bias ? out : 0), {out, in.channels}, in, result);
  return result;
}

Shape Net::tied_linear(Shape in, std::int64_t out) {
  const Shape result{out, in.height, in.width};
  product("tied", 0, {out, in.channels}, in, result);
  return result;
}

Shape Net::batch_norm(std::string name, Shape in) {
  const auto values = static_cast<double>(in.values());
  // Forward reads for the statistics, reads and writes to normalize; backward reads input and
  // gradient twice and writes.
  return moves(std::move(name), 2 * in.channels, 3 * values, 5 * values, in);
}

Shape Net::layer_norm(std::string name, Shape in) {
  const auto values = static_cast<double>(in.values());
  // A row fits the chip: one pass forward; backward one for the input and one for the weights.
  return moves(std::move(name), 2 * in.channels, 2 * values, 5 * values, in);
}

Shape Net::embedding(std::string name, std::int64_t rows, std::int64_t columns,
                     std::int64_t lookups, bool bias) {
  const auto table = static_cast<double>(rows * columns);
  const auto values = static_cast<double>(columns * lookups);
  const Work forward{.values = 2 * values};
  // Dense gradient: the table is cleared, then the rows looked up are added to.
  const Work backward{.values = 3 * values, .fixed_values = table};
  ops_.push_back({std::move(name),
                  rows * columns + (bias ? columns : 0),
                  forward,
                  {backward},
                  {rows, columns}});
  return {columns, lookups, 1};
}

Shape Net::elementwise(std::string name, Shape in) {
  const auto values = static_cast<double>(in.values());
  // Backward reads the gradient and what it depends on.
  return moves(std::move(name), 0, 2 * values, 3 * values, in);
}

Shape Net::add(Shape in) {
  const auto values = static_cast<double>(in.values());
  return moves("add", 0, 3 * values, 3 * values, in);
}

Shape Net::pool(Shape in, const Pool& pool) {
  const std::int64_t round = pool.ceil ? pool.stride - 1 : 0;
  const Shape out{in.channels, windows(in.height + round, pool.kernel, pool.stride, pool.pad),
                  windows(in.width + round, pool.kernel, pool.stride, pool.pad)};
  const auto values = static_cast<double>(in.values() + out.values());
  return moves("pool", 0, values, values, out);
}

Shape Net::global_pool(Shape in) {
  const auto values = static_cast<double>(in.values());
  return moves("pool", 0, values, values, {in.channels});
}

Shape Net::local_response_norm(Shape in) {
  const auto values = static_cast<double>(in.values());
  return moves("lrn", 0, 3 * values, 5 * values, in);
}

Shape Net::flatten(Shape in) {
  return {in.values()};
}

Shape Net::concat(std::initializer_list<Shape> parts) {
  Shape out = *parts.begin();
  out.channels = 0;
  for (const Shape& part : parts) {
    RIFFLE_CHECK_EQ(part.positions(), out.positions());
    out.channels += part.channels;
  }
  const auto values = static_cast<double>(out.values());
  // Backward adds each part's gradient to what its other readers gave.
  return moves("concat", 0, 2 * values, 3 * values, out);
}

Shape Net::attention(Shape in, std::int64_t heads) {
  const std::int64_t length = in.positions();
  const auto scores = static_cast<double>(heads * length * length);
  // Two products over the length; the scores are written, masked, normalized, dropped and read.
  const Work forward{.multiply_adds = static_cast<double>(2 * length * in.values()),
                     .values = static_cast<double>(4 * in.values()) + 8 * scores};
  ops_.push_back({"attention", 0, forward, {forward, forward}});
  return in;
}

void Net::loss(Shape in) {
  const auto values = static_cast<double>(in.values());
  moves("loss", 0, 2 * values, 2 * values, in);
}

std::int64_t Net::parameters() const {
  std::int64_t sum = 0;
  for (const Op& op : ops_) sum += op.elements;
  return sum;
}

double Net::multiply_adds() const {
  double sum = 0;
  for (const Op& op : ops_) sum += op.forward.multiply_adds;
  return sum;
}

std::vector<TraceNode> timed(const Net& net, int batch, const Device& device) {
  const auto bytes_per_value = static_cast<double>(size_of(DType::f32).count);
  const auto time = [&](const Work& work) {
    const double values = work.values * batch + work.fixed_values;
    if (values == 0) return Seconds{};
    const double computing =
        2 * work.multiply_adds * batch / (device.peak_flops_per_second * device.efficiency);
    const double moving = values * bytes_per_value / device.memory.bytes_per_second;
    return Seconds(std::max(computing, moving)) + device.launch;
  };
  std::vector<TraceNode> nodes;
  nodes.reserve(net.ops().size());
  for (const Op& op : net.ops())
    nodes.push_back({op.name, op.elements, time(op.forward),
                     time(op.backward[0]) + time(op.backward[1]), op.shape});
  return nodes;
}

}  // namespace riffle::zoo
