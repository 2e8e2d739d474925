#include "converge/data.h"

#include "riffle/random.h"

namespace riffle::convergence {
namespace {

constexpr int kClouds = 3;
constexpr double kNoise = 1.5;

Samples draw(const std::vector<double>& places, std::size_t width, int classes, std::size_t samples,
             Random random) {
  Samples drawn;
  drawn.features.reserve(samples * width);
  for (std::size_t i = 0; i < samples; ++i) {
    const int label = static_cast<int>(i % static_cast<std::size_t>(classes));
    const std::size_t cloud = static_cast<std::size_t>(label) * kClouds + random.below(kClouds);
    for (std::size_t k = 0; k < width; ++k)
      drawn.features.push_back(
          static_cast<float>(places[cloud * width + k] + kNoise * random.normal()));
    drawn.labels.push_back(label);
  }
  return drawn;
}

}  // namespace

Data make_clouds(std::size_t width, int classes, std::size_t samples, std::uint64_t seed) {
  Random random(seed, 1);
  std::vector<double> places(width * static_cast<std::size_t>(classes) * kClouds);
  for (double& place : places) place = random.normal();
  return {"synthetic", width, classes, draw(places, width, classes, samples, Random(seed, 2)),
          draw(places, width, classes, 2000, Random(seed, 3))};
}

}  // namespace riffle::convergence
