// DenseNet-BC with bottlenecks of 4 times the growth and compression by 2, as in torchvision: each
// layer concatenates the features of all before it. Huang et al., arXiv:1608.06993.
#include <fmt/format.h>

#include <array>

#include "model/zoo/models.h"

namespace riffle::zoo {
namespace {

Shape dense_block(Net& net, int block, Shape features, std::int64_t growth, int layers) {
  for (int layer = 1; layer <= layers; ++layer) {
    const std::string name = fmt::format("denseblock{}.denselayer{}.", block, layer);
    Shape x = net.relu(net.batch_norm(name + "norm1", features));
    x = net.conv(name + "conv1", x, {.out = 4 * growth});
    x = net.relu(net.batch_norm(name + "norm2", x));
    x = net.conv(name + "conv2", x, {.out = growth, .kernel = 3, .pad = 1});
    features = net.concat({features, x});
  }
  return features;
}

Shape transition(Net& net, int block, Shape x) {
  const std::string name = fmt::format("transition{}.", block);
  x = net.relu(net.batch_norm(name + "norm", x));
  x = net.conv(name + "conv", x, {.out = x.channels / 2});
  return net.pool(x, {.kernel = 2, .stride = 2});
}

Net densenet(std::int64_t growth, std::array<int, 4> blocks) {
  Net net;
  Shape x =
      net.conv("conv0", image(3, 224), {.out = 2 * growth, .kernel = 7, .stride = 2, .pad = 3});
  x = net.relu(net.batch_norm("norm0", x));
  x = net.pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (int block = 1; block <= 4; ++block) {
    x = dense_block(net, block, x, growth, blocks.at(block - 1));
    if (block < 4) x = transition(net, block, x);
  }
  x = net.relu(net.batch_norm("norm5", x));
  net.loss(net.linear("classifier", net.global_pool(x), 1000));
  return net;
}

}  // namespace

Net densenet161() {
  return densenet(48, {6, 12, 36, 24});
}

Net densenet201() {
  return densenet(32, {6, 12, 48, 32});
}

}  // namespace riffle::zoo
