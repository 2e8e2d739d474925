#include "strategies/merge.h"

#include <algorithm>
#include <limits>

#include "riffle/error.h"

namespace riffle {

std::vector<ReadyLayer> ready_layers(const Trace& trace, Wire wire) {
  std::vector<ReadyLayer> layers;
  Seconds ready{};
  for (std::size_t i = trace.layers.size(); i-- > 0;) {
    const Layer& layer = trace.layers[i];
    ready += layer.backward;
    layers.push_back({ready, wire_bytes(trace.bytes(layer), trace.dtype, wire)});
  }
  return layers;
}

std::vector<int> merge_optimal(const std::vector<ReadyLayer>& layers, const Curve& cost) {
  const std::size_t count = layers.size();
  // Plain numbers and one array each: the inner loop runs 5*10^7 times for 10 000 layers.
  std::vector<double> bytes_before(count + 1, 0);
  for (std::size_t j = 0; j < count; ++j)
    bytes_before[j + 1] = bytes_before[j] + static_cast<double>(layers[j].bytes.count);
  struct Line {
    double until, a, b;
  };
  std::vector<Line> lines;
  const auto& pieces = cost.pieces();
  for (std::size_t p = 0; p < pieces.size(); ++p)
    lines.push_back({p + 1 < pieces.size() ? static_cast<double>(pieces[p + 1].from.count)
                                           : std::numeric_limits<double>::infinity(),
                     pieces[p].cost.a.count(), pieces[p].cost.b.value});

  std::vector<double> end(count + 1, 0);         // F
  std::vector<std::size_t> begin(count + 1, 0);  // of the last message of the best partition
  for (std::size_t j = 1; j <= count; ++j) {
    const double ready = layers[j - 1].ready.count();
    double best = std::numeric_limits<double>::infinity();
    const Line* line = lines.data();  // messages grow as i falls, so the piece only moves on
    for (std::size_t i = j; i-- > 0;) {
      const double size = bytes_before[j] - bytes_before[i];
      while (size >= line->until) ++line;
      const double candidate = std::max(end[i], ready) + (line->a + line->b * size);
      if (candidate < best) {
        best = candidate;
        begin[j] = i;
      }
    }
    end[j] = best;
  }

  std::vector<int> layers_each;
  for (std::size_t j = count; j > 0; j = begin[j])
    layers_each.push_back(static_cast<int>(j - begin[j]));
  std::ranges::reverse(layers_each);
  return layers_each;
}

std::vector<int> merge_paper(const std::vector<ReadyLayer>& layers, const LinearCost& cost) {
  std::vector<int> layers_each;
  Seconds lane_free{};  // when the messages before the open one have ended
  Bytes open;
  int merged = 0;
  for (std::size_t j = 0; j < layers.size(); ++j) {
    open += layers[j].bytes;
    ++merged;
    const Seconds start = std::max(lane_free, layers[j].ready);
    const bool last = j + 1 == layers.size();
    if (!last && layers[j + 1].ready - start < cost.a) continue;
    layers_each.push_back(merged);
    lane_free = start + cost(open);
    open = Bytes{};
    merged = 0;
  }
  return layers_each;
}

std::vector<int> merge_two_lanes(const std::vector<ReadyLayer>& layers, const LinearCost& cost) {
  std::vector<int> layers_each;
  Seconds free{};   // the lane that is free first
  Seconds later{};  // the other one
  Bytes open;
  int merged = 0;
  for (std::size_t j = 0; j < layers.size(); ++j) {
    open += layers[j].bytes;
    ++merged;
    const Seconds start = std::max(free, layers[j].ready);
    const bool last = j + 1 == layers.size();
    if (!last && start > layers[j + 1].ready) continue;
    layers_each.push_back(merged);
    const double contention = later > start ? 1.5 : 1;
    free = start + cost.a + cost.b * open * contention;
    if (free > later) std::swap(free, later);
    open = Bytes{};
    merged = 0;
  }
  return layers_each;
}

Seconds merged_end(const std::vector<ReadyLayer>& layers, const std::vector<int>& layers_each,
                   const Curve& cost) {
  Seconds end{};
  std::size_t j = 0;
  for (const int count : layers_each) {
    Bytes bytes;
    Seconds ready{};
    for (int i = 0; i < count; ++i, ++j) {
      bytes += layers[j].bytes;
      ready = layers[j].ready;
    }
    end = std::max(end, ready) + cost(bytes);
  }
  RIFFLE_CHECK_EQ(j, layers.size());
  return end;
}

}  // namespace riffle
