// A training loop on libtorch with two changed lines, marked below.
//
//   riffle launch -n 4 -- libtorch_example sesgd      (or torchrun --no-python, mpirun, srun)
#include <torch/torch.h>

#include <cstdio>

#include "riffle/riffle.h"
#include "riffle/torch.h"

namespace {

struct Batch {
  torch::Tensor x, y;
};

// Ten fixed patterns under noise: learnable, and nothing to download.
Batch digits(std::uint64_t seed, int count) {
  auto fixed = at::detail::createCPUGenerator(0);
  auto random = at::detail::createCPUGenerator(seed);
  const torch::Tensor patterns = at::randn({10, 64}, fixed, torch::kFloat32);
  const torch::Tensor y = at::randint(0, 10, {count}, random, torch::kInt64);
  return {patterns.index_select(0, y) + 1.5 * at::randn({count, 64}, random, torch::kFloat32), y};
}

int train(const char* strategy) {
  const auto engine = riffle::launched_engine();
  torch::manual_seed(0);
  torch::nn::Sequential model(torch::nn::Linear(64, 64), torch::nn::ReLU(),
                              torch::nn::Linear(64, 10));
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));

  auto session = riffle::attach(*engine, strategy, *model, optimizer);  // <- the first
  for (int step = 0; step < 150; ++step) {
    const auto seed = static_cast<std::uint64_t>(1 + step * engine->size() + engine->rank());
    const Batch batch = digits(seed, 32);
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(model->forward(batch.x), batch.y).backward();
    session.step();  // <- the second, instead of optimizer.step()
  }
  session.finish();

  torch::NoGradGuard no_gradients;
  const Batch test = digits(100000, 2000);
  const double accuracy =
      (model->forward(test.x).argmax(1) == test.y).to(torch::kFloat64).mean().item<double>();
  if (engine->rank() == 0)
    std::printf("%d workers: accuracy %.1f%%\n", engine->size(), 100 * accuracy);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(argc > 1 ? argv[1] : "mg-wfbp");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "libtorch_example: %s\n", error.what());
    return 1;
  }
}
