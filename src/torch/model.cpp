#include "torch/model.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_set>

#include "riffle/error.h"
#include "torch/tensors.h"

namespace riffle::adapter {
namespace {

template <typename Items>
std::vector<Named> distinct(const Items& items) {
  std::vector<Named> all;
  std::unordered_set<const void*> seen;
  for (const auto& item : items)
    if (item.value().defined() && seen.insert(item.value().unsafeGetTensorImpl()).second)
      all.push_back({item.key(), item.value()});
  return all;
}

// As it lies in memory: the dimension of the longest stride first.
std::vector<std::int64_t> shape_of(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return tensor.sizes().vec();
  std::vector<std::int64_t> order(static_cast<std::size_t>(tensor.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::int64_t d) { return tensor.stride(d); });
  std::ranges::transform(order, order.begin(), [&](std::int64_t d) { return tensor.size(d); });
  return order;
}

TensorSpec spec_of(const Named& named) {
  // Strided views are made dense once; the model keeps its tensor.
  if (!is_dense(named.tensor)) named.tensor.set_data(named.tensor.detach().contiguous());
  const TensorView memory = tensor_view(named.tensor, named.name);
  return {named.name, named.tensor.numel(), memory.dtype, memory.data, shape_of(named.tensor)};
}

}  // namespace

Model::Model(torch::nn::Module& module) {
  for (Named& each : distinct(module.named_parameters()))
    (each.tensor.requires_grad() ? parameters_ : rest_).push_back(std::move(each));
  for (Named& each : distinct(module.named_buffers()))
    (is_float(each.tensor) && each.tensor.numel() > 0 ? buffers_ : rest_)
        .push_back(std::move(each));
}

std::vector<at::Tensor> Model::trained() const {
  std::vector<at::Tensor> all;
  for (const Named& each : parameters_) all.push_back(each.tensor);
  return all;
}

at::Tensor& Model::gradient(std::size_t p) const {
  return parameters_[p].tensor.mutable_grad();
}

ModelSpec Model::spec(const std::string& name) const {
  ModelSpec spec{.parameters = {}, .name = name};
  for (const Named& each : parameters_) spec.parameters.push_back(spec_of(each));
  for (const Named& each : buffers_) spec.buffers.push_back(spec_of(each));
  return spec;
}

void Model::broadcast_rest(Session& session) const {
  for (const Named& each : rest_) {
    if (each.tensor.numel() == 0) continue;
    if (!is_dense(each.tensor)) usage_error("{}: is no dense tensor", each.name);
    session.broadcast(bytes_of(each.tensor));
  }
}

void Model::bind(const Session& session) {
  for (std::size_t p = 0; p < views_.size(); ++p)
    if (is_at(gradient(p), views_[p])) gradient(p).reset();
  views_.clear();
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    const at::Tensor& tensor = parameters_[p].tensor;
    const int index = static_cast<int>(p);
    if (session.keeps_weights()) tensor.set_data(view_of(session.weights(index), tensor.detach()));
    if (session.keeps_gradients())
      views_.push_back(view_of(session.gradient(index), tensor.detach()));
  }
  for (std::size_t i = 0; session.keeps_weights() && i < buffers_.size(); ++i)
    buffers_[i].tensor.set_data(
        view_of(session.buffer(static_cast<int>(i)), buffers_[i].tensor.detach()));
}

void Model::unbind(const Session& session) const {
  release();
  for (const auto* all : {&parameters_, &buffers_})
    for (const Named& each : *all)
      if (session.keeps_weights()) each.tensor.set_data(each.tensor.detach().clone());
}

void Model::check_in_place(const Session& session) const {
  for (std::size_t p = 0; session.keeps_weights() && p < parameters_.size(); ++p)
    if (parameters_[p].tensor.data_ptr() != session.weights(static_cast<int>(p)).data)
      usage_error("{}: was moved (to another type, device or memory) while its weights are mixed",
                  parameters_[p].name);
}

void Model::adopt(std::size_t p, bool hidden) const {
  if (views_.empty() || !gradient(p).defined()) return;
  const at::NoGradGuard guard;
  const bool is_shown = is_at(gradient(p), views_[p]);
  if (!is_shown) views_[p].copy_(gradient(p));
  if (is_shown && hidden) gradient(p) = views_[p].clone();
  if (!is_shown && !hidden) gradient(p) = views_[p];
}

void Model::show(const std::vector<int>& parameters, const Session& session) const {
  for (const int p : parameters)
    if (!views_.empty()) gradient(p) = session.used(p) ? views_[p] : at::Tensor();
}

void Model::release() const {
  for (std::size_t p = 0; p < views_.size(); ++p)
    if (is_at(gradient(p), views_[p])) gradient(p) = views_[p].clone();
}

}  // namespace riffle::adapter
