// A network written down as the operations of its forward pass, in order. Shapes flow through the
// calls as tensors do in a framework; each call notes parameters, multiply-adds and memory traffic.
//
//   Net net;
//   Shape x = net.conv("conv1", image(3, 224), {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
//   x = net.relu(net.batch_norm("bn1", x));
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "riffle/zoo.h"

namespace riffle::zoo {

// One sample of a tensor: channels at each of height x width positions. A sequence of n tokens is
// n x 1 positions, a plain vector 1 x 1.
struct Shape {
  std::int64_t channels = 0;
  std::int64_t height = 1;
  std::int64_t width = 1;
  bool gradient = true;  // the input of the network needs none

  [[nodiscard]] std::int64_t positions() const { return height * width; }
  [[nodiscard]] std::int64_t values() const { return channels * positions(); }
};

inline Shape image(std::int64_t channels, std::int64_t side) {
  return {channels, side, side, false};
}

// Kernel or window; the _w fields default to the square ones.
struct Conv {
  std::int64_t out = 0;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  bool bias = false;
  std::int64_t kernel_w = 0;
  std::int64_t pad_w = -1;
};

struct Pool {
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  std::int64_t pad = 0;
  bool ceil = false;  // a last, partial window counts (Caffe's rule)
};

// One kernel: multiply-adds and values read and written per sample, and values per step whatever
// the batch (weights). All zero: no kernel at all.
struct Work {
  double multiply_adds = 0;
  double values = 0;
  double fixed_values = 0;
};

struct Op {
  std::string name;
  std::int64_t elements = 0;  // parameters
  Work forward;
  std::array<Work, 2> backward;       // by the weights, by the input
  std::vector<std::int64_t> shape{};  // of its matrix, if it has one
};

class Net {
 public:
  Shape conv(std::string name, Shape in, const Conv& conv);
  // Weight and bias per channel: two passes over the input forward, two backward.
  Shape batch_norm(std::string name, Shape in);
  Shape layer_norm(std::string name, Shape in);
  Shape linear(std::string name, Shape in, std::int64_t out, bool bias = true);
  // A table of rows x columns, `lookups` of them per sample; its gradient is dense.
  Shape embedding(std::string name, std::int64_t rows, std::int64_t columns, std::int64_t lookups,
                  bool bias = false);

  // Any function of one value.
  Shape elementwise(std::string name, Shape in);
  Shape relu(Shape in) { return elementwise("relu", in); }
  Shape gelu(Shape in) { return elementwise("gelu", in); }
  Shape dropout(Shape in) { return elementwise("dropout", in); }
  Shape add(Shape in);  // residual; backward adds the two gradients
  Shape pool(Shape in, const Pool& pool);
  Shape global_pool(Shape in);
  Shape local_response_norm(Shape in);
  Shape flatten(Shape in);  // moves nothing
  Shape concat(std::initializer_list<Shape> parts);
  // Scores, softmax, dropout and weighted sum; `in` is the queries' shape.
  Shape attention(Shape in, std::int64_t heads);
  // A product with a matrix that an earlier layer owns (tied embedding): no parameters of its own,
  // both gradients computed here.
  Shape tied_linear(Shape in, std::int64_t out);
  void loss(Shape in);

  [[nodiscard]] const std::vector<Op>& ops() const { return ops_; }
  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] double multiply_adds() const;  // of one sample's forward pass

 private:
  // `weights`: the shape of the matrix.
  void product(std::string name, std::int64_t elements, std::vector<std::int64_t> weights, Shape in,
               Shape out);
  Shape moves(std::string name, std::int64_t elements, double forward, double backward, Shape out);

  std::vector<Op> ops_;
};

// The trace's nodes: each kernel takes the longer of computing and moving, plus its launch.
std::vector<TraceNode> timed(const Net& net, int batch, const Device& device);

}  // namespace riffle::zoo
