#include "replicas.h"

#include <algorithm>

#include "riffle/error.h"
#include "riffle/random.h"

namespace riffle::test {

using torch::Tensor;
namespace nn = torch::nn;

NetImpl::NetImpl(std::int64_t seed) {
  first = register_module("first", nn::Linear(6, 16));
  norm = register_module("norm", nn::BatchNorm1d(16));
  second = register_module("second", nn::Linear(16, 16));
  unused = register_module("unused", nn::Linear(3, 3));
  last = register_module("last", nn::Linear(16, 1));
  frozen = register_parameter("frozen", torch::ones({16}), false);
  to(torch::kFloat64);
  integers = register_buffer("integers", torch::full({3}, seed, torch::kLong));
}

Tensor NetImpl::forward(const Tensor& x, const std::function<void(nn::Module&)>& before) {
  const auto use = [&](auto& module, const Tensor& input) {
    if (before) before(*module);
    return module->forward(input);
  };
  Tensor y = torch::tanh(use(norm, use(first, x)));
  y = torch::tanh(use(second, y)) * (1 + frozen);
  return use(last, y);
}

Net make_net(std::uint64_t seed) {
  const torch::NoGradGuard guard;
  Net net(static_cast<std::int64_t>(seed));
  Random random(seed);
  for (Tensor& tensor : net->parameters())
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      tensor.view(-1)[i] = random.uniform(-0.5, 0.5);
  return net;
}

Tensor loss_of(Net& net, Rank rank, int step, const std::function<void(nn::Module&)>& before) {
  Random random(99, static_cast<std::uint64_t>(rank * 1000 + step));
  Tensor x = torch::empty({5, 6}, torch::kFloat64);
  Tensor y = torch::empty({5, 1}, torch::kFloat64);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.view(-1)[i] = random.normal();
  for (std::int64_t i = 0; i < y.numel(); ++i) y.view(-1)[i] = random.normal();
  return (net->forward(x, before) - y).pow(2).mean();
}

OptimizerPtr make_sgd(Net& net) {
  return std::make_unique<torch::optim::SGD>(
      net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9).weight_decay(1e-3));
}

OptimizerPtr make_adamw(Net& net) {
  return std::make_unique<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(0.01));
}

void set_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) group.options().set_lr(rate);
}

Tensor flat(const Net& net) {
  std::vector<Tensor> all;
  for (const auto& tensors : {net->parameters(), net->buffers()})
    for (const Tensor& each : tensors) all.push_back(each.detach().to(torch::kFloat64).reshape(-1));
  return torch::cat(all);
}

double distance(const Tensor& a, const Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

// ---- replicas

Replicas::Replicas(const World& world, const MakeOptimizer& make) : world_(world) {
  for (int i = 0; i < world.size(); ++i) {
    nets.push_back(make_net(1));
    optimizers.push_back(make(nets.back()));
    agreed_.push_back(gather(i, Payload::weight));
    momentum_.push_back(torch::zeros_like(agreed_.back()));
  }
}

std::vector<Tensor> Replicas::tensors(Rank rank, Payload payload) {
  const auto index = static_cast<std::size_t>(rank);
  std::vector<Tensor> all;
  if (payload == Payload::buffers) {
    for (const Tensor& each : nets[index]->buffers())
      if (each.is_floating_point()) all.push_back(each);
    return all;
  }
  for (const Tensor& each : nets[index]->parameters()) {
    if (!each.requires_grad()) continue;
    if (payload == Payload::weight) {
      all.push_back(each.detach());
      continue;
    }
    const auto& states = optimizers[index]->state();
    const auto found = states.find(each.unsafeGetTensorImpl());
    if (found != states.end())
      all.push_back(static_cast<torch::optim::SGDParamState&>(*found->second).momentum_buffer());
  }
  return all;
}

Tensor Replicas::gather(Rank rank, Payload payload) {
  std::vector<Tensor> all;
  for (const Tensor& each : tensors(rank, payload)) all.push_back(each.reshape(-1));
  return torch::cat(all);
}

void Replicas::scatter(Rank rank, Payload payload, const Tensor& values) {
  std::int64_t offset = 0;
  for (const Tensor& each : tensors(rank, payload)) {
    each.copy_(values.narrow(0, offset, each.numel()).view(each.sizes()));
    offset += each.numel();
  }
}

void Replicas::average_gradients() {
  for (std::size_t p = 0; p < nets[0]->parameters().size(); ++p) {
    if (!nets[0]->parameters()[p].grad().defined()) continue;
    Tensor sum = torch::zeros_like(nets[0]->parameters()[p]);
    for (Net& net : nets) sum += net->parameters()[p].grad();
    for (Net& net : nets)
      net->parameters()[p].mutable_grad() = sum / static_cast<double>(nets.size());
  }
}

void Replicas::take(const Program& program, Step step, Start start) {
  for (Exchange exchange : program.exchanges) {
    if (exchange.start != start || exchange.payload == Payload::gradient) continue;
    const auto add = [&] {
      Flight& flight = flights_.emplace_back(Flight{step, exchange, {}});
      for (Rank rank = 0; rank < world_.size(); ++rank)
        flight.snapshots.push_back(gather(rank, exchange.payload));
    };
    add();
    if (exchange.payload != Payload::weight) continue;
    // Statistics go with the weights, but are never extrapolated.
    exchange.payload = Payload::buffers;
    exchange.scales.clear();
    if (exchange.merge.kind == Merge::Kind::outer) exchange.merge = riffle::mix(exchange.merge.xi);
    exchange.merge.scale = 1;
    add();
  }
}

void Replicas::merge(const Flight& flight) {
  const Exchange& exchange = flight.exchange;
  const int members = exchange.group.size();
  const auto of = [&](int member) {
    return flight.snapshots.at(exchange.group.ranks().at(member));
  };
  const auto weight = [&](int member) {
    return exchange.weights.empty() ? 1.0 : exchange.weights.at(member);
  };
  for (int i = 0; i < members; ++i) {
    const Rank rank = exchange.group.ranks().at(i);
    Tensor mean = torch::zeros_like(of(i));
    if (exchange.collective == Collective::shift) {
      mean = (of(i) + of((i + members - exchange.shift % members) % members)) / 2;
    } else {
      double all = 0;
      for (int j = 0; j < members; ++j) all += weight(j);
      for (int j = 0; j < members; ++j) mean += of(j) * (weight(j) / all);
    }
    const Tensor x = gather(rank, exchange.payload);
    const double scale = exchange.scales.empty() ? exchange.merge.scale : exchange.scales.at(i);
    const Merge& merge = exchange.merge;
    switch (merge.kind) {
      case Merge::Kind::replace:
        scatter(rank, exchange.payload, mean);
        break;
      case Merge::Kind::mix:
        scatter(rank, exchange.payload, merge.xi * x + (1 - merge.xi) * mean);
        break;
      case Merge::Kind::correct: {
        Tensor corrected = x + scale * (mean - of(i));
        // A variance stays one.
        if (exchange.payload == Payload::buffers)
          corrected = torch::where((corrected <= 0) & (x > 0) & (mean > 0) & (of(i) > 0),
                                   torch::minimum(x, mean), corrected);
        scatter(rank, exchange.payload, corrected);
        break;
      }
      case Merge::Kind::outer: {
        const Tensor delta = agreed_[rank] - mean;
        momentum_[rank] = merge.momentum * momentum_[rank] + delta;
        const Tensor& along =
            merge.nesterov ? delta + merge.momentum * momentum_[rank] : momentum_[rank];
        agreed_[rank] = agreed_[rank] - merge.learning_rate * along;
        scatter(rank, exchange.payload, merge.xi * x + (1 - merge.xi) * agreed_[rank]);
        break;
      }
    }
  }
}

void Replicas::merge(Step step, DuePoint due) {
  const auto is_due = [&](const Flight& flight) {
    return flight.exchange.due.point == due && flight.step + flight.exchange.due.steps == step;
  };
  for (const Flight& flight : flights_)
    if (is_due(flight)) merge(flight);
  std::erase_if(flights_, is_due);
}

void Replicas::train(const std::string& spec, int steps) {
  const NamedStrategy strategy = StrategyTable::builtin().make(spec);
  Trace trace;
  trace.layers.push_back({"all", 1, Seconds(1), Seconds(1)});
  const auto for_each_rank = [&](const InLoop& call, int t) {
    for (std::size_t i = 0; call && i < nets.size(); ++i)
      call(nets[i], *optimizers[i], static_cast<Rank>(i), t);
  };
  for (int t = 0; t < steps; ++t) {
    const Program program = strategy->program(t, world_, one_bucket(trace));
    merge(t, DuePoint::before_forward);
    for (OptimizerPtr& optimizer : optimizers) optimizer->zero_grad();
    for_each_rank(backward, t);
    const torch::NoGradGuard guard;
    take(program, t, Start::bucket_ready);
    take(program, t, Start::backward_done);
    if (strategy->traits(world_).exact) average_gradients();
    for_each_rank(before_update, t);
    merge(t, DuePoint::before_step);
    for (OptimizerPtr& optimizer : optimizers) optimizer->step();
    merge(t, DuePoint::after_step);
    take(program, t, Start::bucket_stepped);
    take(program, t, Start::step_done);
  }
  // What the next forward would see.
  const torch::NoGradGuard guard;
  merge(steps, DuePoint::before_forward);
}

}  // namespace riffle::test
