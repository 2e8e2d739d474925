// The tensors of a model: which are trained, which are averaged, and where they live in a session.
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "riffle/session.h"

namespace riffle::adapter {

struct Named {
  std::string name;
  at::Tensor tensor;
};

class Model {
 public:
  // A tensor that occurs under several names is one.
  explicit Model(torch::nn::Module& module);

  [[nodiscard]] const std::vector<Named>& parameters() const { return parameters_; }  // trained
  [[nodiscard]] const std::vector<Named>& buffers() const { return buffers_; }  // of float types
  [[nodiscard]] std::vector<at::Tensor> trained() const;
  // Of trained parameter p; undefined where it has none.
  [[nodiscard]] at::Tensor& gradient(std::size_t p) const;
  // UsageError for what a session cannot exchange.
  [[nodiscard]] ModelSpec spec(const std::string& name) const;

  // Frozen parameters and integers become rank 0's; nobody touches them later.
  void broadcast_rest(Session& session) const;
  // Weights and buffers become views of the session's memory where it keeps them, now and after its
  // relayout(). Gradients in memory that it had before are gone.
  void bind(const Session& session);
  // The memory goes with the session: what the model still needs is copied.
  void unbind(const Session& session) const;
  // UsageError where weights have left the session's memory.
  void check_in_place(const Session& session) const;

  // --- Gradients where the session keeps them; nothing happens where it does not.
  // A gradient is in the session's memory, and seen there; a copy is seen where it is `hidden`
  // because it travels from there.
  void adopt(std::size_t p, bool hidden) const;
  // Gradients are what the session has, undefined where nobody used the parameter.
  void show(const std::vector<int>& parameters, const Session& session) const;
  // Gradients get memory of their own.
  void release() const;

 private:
  std::vector<Named> parameters_;
  std::vector<Named> buffers_;
  std::vector<Named> rest_;
  std::vector<at::Tensor> views_;  // by parameter, where the session keeps gradients
};

}  // namespace riffle::adapter
