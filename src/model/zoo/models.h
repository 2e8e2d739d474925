// The built-in models, one file per family. Sizes of inputs that a comparison may want to vary are
// arguments; the totals come out of the shapes.
#pragma once

#include "model/zoo/net.h"

namespace riffle::zoo {

// resnet.cpp
Net resnet50();
Net resnet152();
Net wrn_26_10();
// vgg.cpp
Net vgg16();
// densenet.cpp
Net densenet161();
Net densenet201();
// inception.cpp
Net googlenet();
Net inception_v4(int side = 299);
// transformer.cpp
Net bert_base(int sequence = 64);
Net bert_large(int sequence = 64);
Net gpt2();
// deepfm.cpp
Net deepfm();

}  // namespace riffle::zoo
