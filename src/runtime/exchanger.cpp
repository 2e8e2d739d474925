#include "runtime/exchanger.h"

#include "riffle/error.h"

namespace riffle::runtime {

Cluster Exchanger::check(const Cluster& /*known*/, const measure::CheckOptions& /*options*/,
                         const std::function<void()>& /*look_around*/) {
  usage_error("the network cannot be sensed here");
}

void Exchanger::serve(std::vector<Served> /*served*/) {
  usage_error("nothing can be served here");
}

void Exchanger::gather_served(
    const std::function<std::vector<TensorView>(const Exchange&)>& /*values*/) {
  usage_error("nothing is served here");
}

std::string broadcast(Exchanger& exchanger, std::string text) {
  std::uint64_t size = text.size();
  exchanger.broadcast(std::as_writable_bytes(std::span(&size, 1)));
  text.resize(size);
  exchanger.broadcast(std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

}  // namespace riffle::runtime
