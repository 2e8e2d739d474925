#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "riffle/error.h"
#include "riffle/torch.h"
#include "torch/steps.h"
#include "torch/tensors.h"
#include "torch/weight_average.h"

namespace riffle {
namespace {

using adapter::Named;

// What TorchSession::save() gives: a mark, the size of the session's part, that part, the average.
constexpr std::string_view kMark = "riffle-torch-1\n";

struct Saved {
  std::span<const std::byte> session;
  std::span<const std::byte> average;
};

Saved split(std::span<const std::byte> bytes) {
  if (bytes.empty()) return {};
  std::uint64_t size = 0;
  const std::size_t begin = kMark.size() + sizeof(size);
  if (bytes.size() >= begin) std::memcpy(&size, bytes.data() + kMark.size(), sizeof(size));
  if (bytes.size() < begin || std::memcmp(bytes.data(), kMark.data(), kMark.size()) != 0 ||
      size > bytes.size() - begin)
    usage_error("resume: this is not what TorchSession::save() gave");
  return {bytes.subspan(begin, size), bytes.subspan(begin + size)};
}

SessionOptions session_options(const TorchOptions& options, const ChosenStrategy& chosen) {
  SessionOptions session = options.session;
  session.automatic = chosen.automatic;
  session.overlap = options.overlap ? OverlapMode::watched : OverlapMode::none;
  session.resume = split(session.resume).session;
  if (options.log && !session.log) session.log = options.log;
  return session;
}

}  // namespace

class TorchSession::State {
 public:
  State(Engine& engine, const std::string& strategy, torch::nn::Module& module,
        std::vector<torch::optim::Optimizer*> with, TorchOptions given)
      : options(std::move(given)),
        model(module),
        optimizers(std::move(with), model.trained()),
        chosen(choose_strategy(strategy)),
        session(engine, chosen.strategy, model.spec(module.name()),
                session_options(options, chosen)),
        average(options.swa ? std::make_unique<adapter::WeightAverage>(
                                  model, options.swa_from, split(options.session.resume).average)
                            : nullptr),
        steps(session, model, optimizers, average.get(), options.lazy_forward,
              [this](const std::string& line) { log(line); }) {
    if (options.session.broadcast && options.session.resume.empty()) model.broadcast_rest(session);
    options.session.resume = {};  // it need not live longer
  }

  void log(const std::string& line) const {
    if (options.log) return options.log(line);
    if (session.rank() == 0) fmt::print(stderr, "riffle: {}\n", line);
  }

  TorchOptions options;
  adapter::Model model;
  adapter::Optimizers optimizers;
  ChosenStrategy chosen;
  Session session;
  std::unique_ptr<adapter::WeightAverage> average;  // none where it is not wanted
  adapter::Steps steps;
};

TorchSession::TorchSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
TorchSession::TorchSession(TorchSession&&) noexcept = default;
TorchSession& TorchSession::operator=(TorchSession&&) noexcept = default;
TorchSession::~TorchSession() = default;

void TorchSession::step() {
  state_->steps.step();
}
void TorchSession::skip_step() {
  state_->steps.skip_step();
}
double TorchSession::clip_grad_norm_(double max_norm) {
  return state_->steps.clip(max_norm);
}
TorchSession::NoSync TorchSession::no_sync() {
  return NoSync(state_->session);
}
void TorchSession::wait_before_forward(torch::nn::Module& module) {
  state_->steps.wait_before_forward(module);
}
void TorchSession::finish() {
  state_->steps.settle();
  state_->session.finish();
}

NamedTensors TorchSession::averaged() {
  state_->steps.settle();
  NamedTensors result;
  std::vector<std::byte*> into;
  for (const auto* all : {&state_->model.parameters(), &state_->model.buffers()})
    for (const Named& each : *all) {
      result.emplace_back(each.name, each.tensor.detach().clone());
      into.push_back(adapter::bytes_of(result.back().second).data());
    }
  state_->session.averaged(into);
  return result;
}

NamedTensors TorchSession::swa() {
  if (!state_->average) usage_error("TorchOptions::swa was not set");
  return state_->average->joined(state_->session);
}

double TorchSession::consensus_distance() {
  state_->steps.settle();
  return state_->session.consensus_distance();
}

std::vector<std::byte> TorchSession::save() {
  state_->steps.settle();
  const std::vector<std::byte> session = state_->session.save();
  const auto average = state_->average ? state_->average->save() : std::vector<std::byte>();
  const std::uint64_t size = session.size();
  std::vector<std::byte> bytes;
  for (const auto part : {std::as_bytes(std::span(kMark)), std::as_bytes(std::span(&size, 1)),
                          std::span(session), std::span(average)})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

SessionStats TorchSession::stats() const {
  return state_->session.stats();
}
Trace TorchSession::trace() const {
  return state_->session.trace();
}
std::optional<Plan> TorchSession::plan() const {
  return state_->session.plan();
}
Session& TorchSession::session() {
  return state_->session;
}

TorchSession attach(Engine& engine, const std::string& strategy, torch::nn::Module& model,
                    torch::optim::Optimizer& optimizer, TorchOptions options) {
  return attach(engine, strategy, model, std::vector<torch::optim::Optimizer*>{&optimizer},
                std::move(options));
}

TorchSession attach(Engine& engine, const std::string& strategy, torch::nn::Module& model,
                    std::vector<torch::optim::Optimizer*> optimizers, TorchOptions options) {
  return TorchSession(std::make_unique<TorchSession::State>(
      engine, strategy, model, std::move(optimizers), std::move(options)));
}

}  // namespace riffle
