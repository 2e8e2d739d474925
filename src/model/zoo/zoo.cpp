#include "riffle/zoo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "model/zoo/models.h"
#include "riffle/error.h"

namespace riffle {
namespace {

constexpr int kMostSamples = 1 << 30;  // what a trace's JSON may say

struct Entry {
  const char* name;
  const char* configuration;
  const char* paper;
  int batch;
  zoo::Net (*build)();
};

// Sorted by name.
constexpr std::array kModels{
    Entry{"bert-base", "12 layers of 768, sequence 64, uncased, with pooler", "arXiv:1810.04805",
          64, [] { return zoo::bert_base(); }},
    Entry{"bert-large", "24 layers of 1024, sequence 64, uncased, with pooler", "arXiv:1810.04805",
          8, [] { return zoo::bert_large(); }},
    Entry{"deepfm", "Criteo, 39 fields of 1086810 values, embedding 10, MLP 400x3",
          "arXiv:1703.04247", 20480, zoo::deepfm},
    Entry{"densenet161", "ImageNet 224x224, growth 48", "arXiv:1608.06993", 64, zoo::densenet161},
    Entry{"densenet201", "ImageNet 224x224, growth 32", "arXiv:1608.06993", 64, zoo::densenet201},
    Entry{"googlenet", "ImageNet 224x224, Caffe, with both auxiliary heads", "arXiv:1409.4842", 64,
          zoo::googlenet},
    Entry{"gpt2", "12 layers of 768, sequence 1024, tied embedding counted once",
          "Radford et al. 2019", 4, zoo::gpt2},
    Entry{"inception-v4", "ImageNet 299x299", "arXiv:1602.07261", 128,
          [] { return zoo::inception_v4(); }},
    Entry{"resnet152", "ImageNet 224x224, stride in the 3x3", "arXiv:1512.03385", 128,
          zoo::resnet152},
    Entry{"resnet50", "ImageNet 224x224, stride in the 3x3", "arXiv:1512.03385", 64, zoo::resnet50},
    Entry{"vgg16", "ImageNet 224x224, configuration D", "arXiv:1409.1556", 128, zoo::vgg16},
    Entry{"wrn-26-10", "CIFAR-10 32x32, 3 stages of 4 basic blocks", "arXiv:1605.07146", 128,
          zoo::wrn_26_10},
};

}  // namespace

std::vector<std::string> builtin_traces() {
  std::vector<std::string> names;
  names.reserve(kModels.size());
  for (const Entry& entry : kModels) names.emplace_back(entry.name);
  return names;
}

std::vector<BuiltinModel> builtin_models() {
  std::vector<BuiltinModel> models;
  for (const Entry& entry : kModels) {
    const zoo::Net net = entry.build();
    const auto layers =
        std::ranges::count_if(net.ops(), [](const zoo::Op& op) { return op.elements > 0; });
    models.push_back({entry.name, entry.configuration, entry.paper, entry.batch, net.parameters(),
                      static_cast<std::size_t>(layers), net.multiply_adds()});
  }
  return models;
}

Trace builtin_trace(std::string_view name, const BuiltinOptions& options) {
  const auto entry = std::ranges::find(kModels, name, &Entry::name);
  if (entry == kModels.end()) throw UsageError(unknown_name("trace", name, builtin_traces()));
  const Device device = builtin_device(options.device);
  const int batch = options.batch.value_or(entry->batch);
  if (batch < 1 || batch > kMostSamples)
    usage_error("batch: {} must be from 1 to {}", batch, kMostSamples);
  return {.model = entry->name,
          .dtype = DType::f32,
          .batch = batch,
          .layers = fold_nodes(zoo::timed(entry->build(), batch, device)),
          .optimizer_step = {},
          .source = fmt::format("modelled: {}, {:.3g} TFLOP/s at {:.0f} %", device.title,
                                device.peak_flops_per_second / 1e12, device.efficiency * 100)};
}

}  // namespace riffle
