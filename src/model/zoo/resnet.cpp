// Residual networks. He et al., arXiv:1512.03385 (as in torchvision: the stride of a bottleneck is
// in its 3x3 convolution); wide: Zagoruyko and Komodakis, arXiv:1605.07146.
#include <fmt/format.h>

#include <array>

#include "model/zoo/models.h"

namespace riffle::zoo {
namespace {

Shape shortcut(Net& net, const std::string& name, Shape in, Shape out, std::int64_t stride) {
  if (in.channels == out.channels && stride == 1) return in;
  const Shape x = net.conv(name + "downsample.0", in, {.out = out.channels, .stride = stride});
  return net.batch_norm(name + "downsample.1", x);
}

Shape bottleneck(Net& net, const std::string& name, Shape in, std::int64_t width,
                 std::int64_t stride) {
  Shape x = net.conv(name + "conv1", in, {.out = width});
  x = net.relu(net.batch_norm(name + "bn1", x));
  x = net.conv(name + "conv2", x, {.out = width, .kernel = 3, .stride = stride, .pad = 1});
  x = net.relu(net.batch_norm(name + "bn2", x));
  x = net.conv(name + "conv3", x, {.out = 4 * width});
  x = net.batch_norm(name + "bn3", x);
  shortcut(net, name, in, x, stride);
  return net.relu(net.add(x));
}

Shape basic(Net& net, const std::string& name, Shape in, std::int64_t width, std::int64_t stride) {
  Shape x = net.conv(name + "conv1", in, {.out = width, .kernel = 3, .stride = stride, .pad = 1});
  x = net.relu(net.batch_norm(name + "bn1", x));
  x = net.conv(name + "conv2", x, {.out = width, .kernel = 3, .pad = 1});
  x = net.batch_norm(name + "bn2", x);
  shortcut(net, name, in, x, stride);
  return net.relu(net.add(x));
}

Net imagenet(std::array<int, 4> blocks) {
  Net net;
  Shape x = net.conv("conv1", image(3, 224), {.out = 64, .kernel = 7, .stride = 2, .pad = 3});
  x = net.relu(net.batch_norm("bn1", x));
  x = net.pool(x, {.kernel = 3, .stride = 2, .pad = 1});
  for (int stage = 0; stage < 4; ++stage)
    for (int block = 0; block < blocks.at(stage); ++block)
      x = bottleneck(net, fmt::format("layer{}.{}.", stage + 1, block), x, 64 << stage,
                     stage > 0 && block == 0 ? 2 : 1);
  net.loss(net.linear("fc", net.global_pool(x), 1000));
  return net;
}

}  // namespace

Net resnet50() {
  return imagenet({3, 4, 6, 3});
}

Net resnet152() {
  return imagenet({3, 8, 36, 3});
}

// CIFAR-10. 26 = 6n + 2 with n = 4 blocks per stage, the network of DS-Sync's experiments; the WRN
// paper counts the shortcuts' convolutions too and would call the depth 28.
Net wrn_26_10() {
  Net net;
  Shape x = net.conv("conv1", image(3, 32), {.out = 16, .kernel = 3, .pad = 1});
  x = net.relu(net.batch_norm("bn1", x));
  for (int stage = 0; stage < 3; ++stage)
    for (int block = 0; block < 4; ++block)
      x = basic(net, fmt::format("layer{}.{}.", stage + 1, block), x, 160 << stage,
                stage > 0 && block == 0 ? 2 : 1);
  net.loss(net.linear("fc", net.global_pool(x), 10));
  return net;
}

}  // namespace riffle::zoo
