// GoogLeNet as Caffe trains it (biases, no batch norm, both auxiliary heads): Szegedy et al.,
// arXiv:1409.4842. Inception-v4, pure (batch norm, no biases): arXiv:1602.07261.
#include <fmt/format.h>

#include "model/zoo/models.h"

namespace riffle::zoo {
namespace {

// ---- GoogLeNet ----

Shape conv_relu(Net& net, const std::string& name, Shape in, Conv conv) {
  conv.bias = true;
  return net.relu(net.conv(name, in, conv));
}

struct Widths {
  std::int64_t one, reduce3, three, reduce5, five, pool;
};

Shape module(Net& net, const std::string& name, Shape in, const Widths& w) {
  const std::string prefix = "inception_" + name + "/";
  const Shape a = conv_relu(net, prefix + "1x1", in, {.out = w.one});
  Shape b = conv_relu(net, prefix + "3x3_reduce", in, {.out = w.reduce3});
  b = conv_relu(net, prefix + "3x3", b, {.out = w.three, .kernel = 3, .pad = 1});
  Shape c = conv_relu(net, prefix + "5x5_reduce", in, {.out = w.reduce5});
  c = conv_relu(net, prefix + "5x5", c, {.out = w.five, .kernel = 5, .pad = 2});
  Shape d = net.pool(in, {.kernel = 3, .stride = 1, .pad = 1});
  d = conv_relu(net, prefix + "pool_proj", d, {.out = w.pool});
  return net.concat({a, b, c, d});
}

void auxiliary_head(Net& net, const std::string& name, Shape in) {
  Shape x = net.pool(in, {.kernel = 5, .stride = 3});
  x = net.flatten(conv_relu(net, name + "/conv", x, {.out = 128}));
  x = net.dropout(net.relu(net.linear(name + "/fc", x, 1024)));
  net.loss(net.linear(name + "/classifier", x, 1000));
}

// ---- Inception-v4 ----

Shape unit(Net& net, const std::string& name, Shape in, const Conv& conv) {
  const Shape x = net.conv(name + ".conv", in, conv);
  return net.relu(net.batch_norm(name + ".bn", x));
}

constexpr Conv one(std::int64_t out) {
  return {.out = out};
}
constexpr Conv three(std::int64_t out) {
  return {.out = out, .kernel = 3, .pad = 1};
}
constexpr Conv valid(std::int64_t out, std::int64_t stride) {
  return {.out = out, .kernel = 3, .stride = stride};
}
constexpr Conv row(std::int64_t out, std::int64_t width) {  // 1 x width
  return {.out = out, .kernel = 1, .kernel_w = width, .pad_w = width / 2};
}
constexpr Conv column(std::int64_t out, std::int64_t height) {  // height x 1
  return {.out = out, .kernel = height, .pad = height / 2, .kernel_w = 1, .pad_w = 0};
}

Shape chain(Net& net, const std::string& name, Shape x, std::initializer_list<Conv> convs) {
  int i = 0;
  for (const Conv& conv : convs) x = unit(net, fmt::format("{}.{}", name, i++), x, conv);
  return x;
}

Shape same_pool(Net& net, Shape in) {
  return net.pool(in, {.kernel = 3, .stride = 1, .pad = 1});
}
Shape halving_pool(Net& net, Shape in) {
  return net.pool(in, {.kernel = 3, .stride = 2});
}

Shape stem(Net& net, Shape in) {
  Shape x = chain(net, "stem", in, {valid(32, 2), valid(32, 1), three(64)});
  Shape a = halving_pool(net, x);
  Shape b = unit(net, "mixed_3a.conv", x, valid(96, 2));
  x = net.concat({a, b});
  a = chain(net, "mixed_4a.branch0", x, {one(64), valid(96, 1)});
  b = chain(net, "mixed_4a.branch1", x, {one(64), row(64, 7), column(64, 7), valid(96, 1)});
  x = net.concat({a, b});
  a = unit(net, "mixed_5a.conv", x, valid(192, 2));
  b = halving_pool(net, x);
  return net.concat({a, b});
}

Shape inception_a(Net& net, const std::string& name, Shape x) {
  const Shape a = unit(net, name + ".branch0", x, one(96));
  const Shape b = chain(net, name + ".branch1", x, {one(64), three(96)});
  const Shape c = chain(net, name + ".branch2", x, {one(64), three(96), three(96)});
  const Shape d = unit(net, name + ".branch3", same_pool(net, x), one(96));
  return net.concat({a, b, c, d});
}

Shape reduction_a(Net& net, Shape x) {
  const Shape a = unit(net, "reduction_a.branch0", x, valid(384, 2));
  const Shape b = chain(net, "reduction_a.branch1", x, {one(192), three(224), valid(256, 2)});
  return net.concat({a, b, halving_pool(net, x)});
}

Shape inception_b(Net& net, const std::string& name, Shape x) {
  const Shape a = unit(net, name + ".branch0", x, one(384));
  const Shape b = chain(net, name + ".branch1", x, {one(192), row(224, 7), column(256, 7)});
  const Shape c = chain(net, name + ".branch2", x,
                        {one(192), column(192, 7), row(224, 7), column(224, 7), row(256, 7)});
  const Shape d = unit(net, name + ".branch3", same_pool(net, x), one(128));
  return net.concat({a, b, c, d});
}

Shape reduction_b(Net& net, Shape x) {
  const Shape a = chain(net, "reduction_b.branch0", x, {one(192), valid(192, 2)});
  const Shape b =
      chain(net, "reduction_b.branch1", x, {one(256), row(256, 7), column(320, 7), valid(320, 2)});
  return net.concat({a, b, halving_pool(net, x)});
}

Shape inception_c(Net& net, const std::string& name, Shape x) {
  const Shape a = unit(net, name + ".branch0", x, one(256));
  const Shape b = unit(net, name + ".branch1", x, one(384));
  const Shape b1 = unit(net, name + ".branch1a", b, row(256, 3));
  const Shape b2 = unit(net, name + ".branch1b", b, column(256, 3));
  const Shape c = chain(net, name + ".branch2", x, {one(384), column(448, 3), row(512, 3)});
  const Shape c1 = unit(net, name + ".branch2a", c, row(256, 3));
  const Shape c2 = unit(net, name + ".branch2b", c, column(256, 3));
  const Shape d = unit(net, name + ".branch3", same_pool(net, x), one(256));
  return net.concat({a, b1, b2, c1, c2, d});
}

}  // namespace

Net googlenet() {
  const Pool halving{.kernel = 3, .stride = 2, .ceil = true};
  Net net;
  Shape x = conv_relu(net, "conv1/7x7_s2", image(3, 224),
                      {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = net.local_response_norm(net.pool(x, halving));
  x = conv_relu(net, "conv2/3x3_reduce", x, {.out = 64});
  x = conv_relu(net, "conv2/3x3", x, {.out = 192, .kernel = 3, .pad = 1});
  x = net.pool(net.local_response_norm(x), halving);
  x = module(net, "3a", x, {64, 96, 128, 16, 32, 32});
  x = module(net, "3b", x, {128, 128, 192, 32, 96, 64});
  x = net.pool(x, halving);
  x = module(net, "4a", x, {192, 96, 208, 16, 48, 64});
  auxiliary_head(net, "loss1", x);
  x = module(net, "4b", x, {160, 112, 224, 24, 64, 64});
  x = module(net, "4c", x, {128, 128, 256, 24, 64, 64});
  x = module(net, "4d", x, {112, 144, 288, 32, 64, 64});
  auxiliary_head(net, "loss2", x);
  x = module(net, "4e", x, {256, 160, 320, 32, 128, 128});
  x = net.pool(x, halving);
  x = module(net, "5a", x, {256, 160, 320, 32, 128, 128});
  x = module(net, "5b", x, {384, 192, 384, 48, 128, 128});
  x = net.dropout(net.global_pool(x));
  net.loss(net.linear("loss3/classifier", x, 1000));
  return net;
}

Net inception_v4(int side) {
  Net net;
  Shape x = stem(net, image(3, side));
  for (int i = 0; i < 4; ++i) x = inception_a(net, fmt::format("inception_a{}", i), x);
  x = reduction_a(net, x);
  for (int i = 0; i < 7; ++i) x = inception_b(net, fmt::format("inception_b{}", i), x);
  x = reduction_b(net, x);
  for (int i = 0; i < 3; ++i) x = inception_c(net, fmt::format("inception_c{}", i), x);
  net.loss(net.linear("last_linear", net.global_pool(x), 1000));
  return net;
}

}  // namespace riffle::zoo
