#include "torch/weight_average.h"

#include <ATen/ops/zeros.h>

#include <cstring>

#include "riffle/error.h"
#include "torch/tensors.h"

namespace riffle::adapter {
namespace {

// Visits all that is saved, in a fixed order.
template <typename Visit>
void for_each_saved(std::int64_t& steps, std::int64_t& samples,
                    const std::vector<at::Tensor>& means, const Visit& visit) {
  visit(std::as_writable_bytes(std::span(&steps, 1)));
  visit(std::as_writable_bytes(std::span(&samples, 1)));
  for (const at::Tensor& mean : means) visit(bytes_of(mean));
}

}  // namespace

WeightAverage::WeightAverage(const Model& model, std::int64_t start,
                             std::span<const std::byte> saved)
    : tensors_(model.parameters()), start_(start) {
  if (start < 0) usage_error("swa_from: {}: must be 0 or more", start);
  tensors_.insert(tensors_.end(), model.buffers().begin(), model.buffers().end());
  for (const Named& each : tensors_)
    means_.push_back(at::zeros(each.tensor.sizes(),
                               each.tensor.options().dtype(at::kDouble).requires_grad(false)));
  if (saved.empty()) return;
  if (saved.size() != save().size())
    usage_error("the weight average in the checkpoint is of another model");
  for_each_saved(steps_, samples_, means_, [&](std::span<std::byte> bytes) {
    std::memcpy(bytes.data(), saved.data(), bytes.size());
    saved = saved.subspan(bytes.size());
  });
}

void WeightAverage::sample() {
  if (++steps_ <= start_) return;
  ++samples_;
  const at::NoGradGuard guard;
  for (std::size_t i = 0; i < means_.size(); ++i)
    means_[i].add_((tensors_[i].tensor.to(at::kDouble) - means_[i]) /
                   static_cast<double>(samples_));
}

std::vector<std::pair<std::string, at::Tensor>> WeightAverage::joined(Session& session) const {
  if (samples_ == 0) usage_error("no step has been averaged yet");
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (std::size_t i = 0; i < means_.size(); ++i) {
    const at::Tensor mean = means_[i].clone();
    session.average({mean.data_ptr<double>(), static_cast<std::size_t>(mean.numel())});
    all.emplace_back(tensors_[i].name, mean.to(tensors_[i].tensor.scalar_type()));
  }
  return all;
}

std::vector<std::byte> WeightAverage::save() const {
  std::vector<std::byte> saved;
  auto [steps, samples] = std::pair(steps_, samples_);
  for_each_saved(steps, samples, means_, [&](std::span<std::byte> bytes) {
    saved.insert(saved.end(), bytes.begin(), bytes.end());
  });
  return saved;
}

}  // namespace riffle::adapter
