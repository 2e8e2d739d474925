// VGG, configuration D. Simonyan and Zisserman, arXiv:1409.1556.
#include <fmt/format.h>

#include "model/zoo/models.h"

namespace riffle::zoo {

Net vgg16() {
  struct Stage {
    int convolutions;
    int channels;
  };
  Net net;
  Shape x = image(3, 224);
  int stage = 1;
  for (const auto& [convolutions, channels] :
       {Stage{2, 64}, Stage{2, 128}, Stage{3, 256}, Stage{3, 512}, Stage{3, 512}}) {
    for (int i = 1; i <= convolutions; ++i)
      x = net.relu(net.conv(fmt::format("conv{}_{}", stage, i), x,
                            {.out = channels, .kernel = 3, .pad = 1, .bias = true}));
    x = net.pool(x, {.kernel = 2, .stride = 2});
    ++stage;
  }
  x = net.flatten(x);
  for (const char* name : {"fc6", "fc7"}) x = net.dropout(net.relu(net.linear(name, x, 4096)));
  net.loss(net.linear("fc8", x, 1000));
  return net;
}

}  // namespace riffle::zoo
