// Collectives that move tensors as they are.
#include <ATen/Functions.h>

#include <numeric>

#include "backend/backend.h"

namespace riffle::backend {

using distributed::TeamCall;

RiffleBackend::Works RiffleBackend::broadcast(Tensors& tensors,
                                              const c10d::BroadcastOptions& options) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "riffle: broadcast takes one tensor, not ",
                    tensors.size());
  check_tensor(tensors[0], "broadcast");
  const Rank from = root(options.rootRank, "broadcast");
  return start({.name = "broadcast",
                .title = "riffle:broadcast",
                .type = c10d::OpType::BROADCAST,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = tensors,
                .outputs = tensors},
               [tensor = tensors[0], from](TeamCall& call) {
                 Flat flat(tensor);
                 call.collectives().broadcast(call.group(), from, flat.view(), call.options());
                 flat.give_back();
               });
}

// A part for each member of a tensor that holds them one after the other.
RiffleBackend::Tensors RiffleBackend::split_evenly(const at::Tensor& all, const at::Tensor& one,
                                                   const char* collective) const {
  check_tensor(all, collective);
  TORCH_CHECK_VALUE(all.scalar_type() == one.scalar_type() && all.numel() == one.numel() * size_,
                    "riffle: ", collective, ": ", all.numel(), " ", all.scalar_type(),
                    " for all of ", size_, " members, ", one.numel(), " ", one.scalar_type(),
                    " for each");
  TORCH_CHECK_VALUE(all.is_contiguous(), "riffle: ", collective,
                    ": the tensor of all members must be contiguous");
  Tensors parts;
  const at::Tensor flat = all.view({-1});
  for (int member = 0; member < size_; ++member)
    parts.push_back(flat.narrow(0, member * one.numel(), one.numel()).view(one.sizes()));
  return parts;
}

void RiffleBackend::gather_parts(TeamCall& call, const Tensors& outputs,
                                 const at::Tensor& input) const {
  const Lines lines(size_, input);
  lines.part(team_->place_of(rank_)).copy_(input);
  CollectiveOptions how = call.options();
  how.padding = lines.padding();
  call.collectives().all_gather(call.group(), lines.view(), how);
  for (int member = 0; member < size_; ++member) {
    const at::Tensor& output = outputs[static_cast<std::size_t>(member)];
    output.copy_(lines.part(team_->place_of(member)).view(output.sizes()));
  }
}

RiffleBackend::Works RiffleBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                              const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(inputs.size() == 1 && outputs.size() == 1,
                    "riffle: all_gather takes one input and one list of outputs, not ",
                    inputs.size(), " and ", outputs.size());
  TensorLists by_member;
  for (const at::Tensor& output : outputs[0]) by_member.push_back({output});
  return allgather_coalesced(by_member, inputs, options);
}

RiffleBackend::Works RiffleBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                                        const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(!inputs.empty(), "riffle: all_gather of no tensor");
  const auto members = static_cast<std::size_t>(size_);
  TORCH_CHECK_VALUE(outputs.size() == members, "riffle: all_gather: outputs of ", outputs.size(),
                    " members in a group of ", size_);
  TensorLists lists(inputs.size());
  Tensors all;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i], "all_gather");
    for (std::size_t m = 0; m < members; ++m) {
      TORCH_CHECK_VALUE(outputs[m].size() == inputs.size(),
                        "riffle: all_gather: ", outputs[m].size(), " outputs for ", inputs.size(),
                        " inputs");
      lists[i].push_back(outputs[m][i]);
      check_tensor(lists[i].back(), "all_gather");
      check_same(lists[i].back(), inputs[i], "all_gather");
    }
    all.insert(all.end(), lists[i].begin(), lists[i].end());
  }
  return start(
      {.name = "all_gather",
       .title = "riffle:all_gather",
       .type = inputs.size() == 1 ? c10d::OpType::ALLGATHER : c10d::OpType::ALLGATHER_COALESCED,
       .timeout = options.timeout,
       .async = options.asyncOp,
       .inputs = inputs,
       .outputs = all},
      [this, lists, inputs](TeamCall& call) {
        for (std::size_t i = 0; i < inputs.size(); ++i) gather_parts(call, lists[i], inputs[i]);
      });
}

RiffleBackend::Works RiffleBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                    const c10d::AllgatherOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return allgather_into_tensor_coalesced(outputs, inputs, options);
}

RiffleBackend::Works RiffleBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "riffle: all_gather of ", inputs.size(),
                    " tensors into ", outputs.size());
  TensorLists lists;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    check_tensor(inputs[i], "all_gather");
    lists.push_back(split_evenly(outputs[i], inputs[i], "all_gather"));
  }
  return start({.name = "all_gather",
                .title = "riffle:_all_gather_base",
                .type = c10d::OpType::_ALLGATHER_BASE,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = inputs,
                .outputs = outputs},
               [this, lists, inputs](TeamCall& call) {
                 for (std::size_t i = 0; i < inputs.size(); ++i)
                   gather_parts(call, lists[i], inputs[i]);
               });
}

// Runs an exchange of parts that are given by member; an undefined tensor is no part.
void RiffleBackend::exchange(TeamCall& call, const Tensors& outputs, const Tensors& inputs,
                             at::ScalarType type, const Exchange& run) const {
  const auto members = static_cast<std::size_t>(size_);
  std::vector<std::span<const std::byte>> out(members);
  std::vector<std::span<std::byte>> in(members);
  Tensors kept;  // contiguous copies, until the end
  Tensors copied(members);
  for (int member = 0; member < size_; ++member) {
    const auto m = static_cast<std::size_t>(member);
    const auto place = static_cast<std::size_t>(team_->place_of(member));
    if (inputs[m].defined()) {
      kept.push_back(inputs[m].contiguous());
      out[place] = {data_of(kept.back()), bytes_of(kept.back())};
    }
    if (outputs[m].defined()) {
      copied[m] = outputs[m].contiguous();
      in[place] = {data_of(copied[m]), bytes_of(copied[m])};
    }
  }
  const Element element = element_of(type);
  run(call, {.out = out, .in = in, .dtype = element.dtype});
  for (std::size_t m = 0; m < members; ++m)
    if (outputs[m].defined() && !copied[m].is_same(outputs[m])) outputs[m].copy_(copied[m]);
}

RiffleBackend::Works RiffleBackend::gather(TensorLists& outputs, Tensors& inputs,
                                           const c10d::GatherOptions& options) {
  TORCH_CHECK_VALUE(inputs.size() == 1, "riffle: gather takes one input, not ", inputs.size());
  check_tensor(inputs[0], "gather");
  const Rank to = root(options.rootRank, "gather");
  Tensors all(static_cast<std::size_t>(size_));
  if (options.rootRank == rank_) {
    TORCH_CHECK_VALUE(outputs.size() == 1 && outputs[0].size() == all.size(),
                      "riffle: gather: the root needs an output for each of ", size_, " members");
    all = outputs[0];
    for (const at::Tensor& output : all) check_tensor(output, "gather");
    for (const at::Tensor& output : all) check_same(output, inputs[0], "gather");
  } else {
    TORCH_CHECK_VALUE(outputs.empty() || outputs[0].empty(),
                      "riffle: gather: outputs on a rank that is not the root");
  }
  return start({.name = "gather",
                .title = "riffle:gather",
                .type = c10d::OpType::GATHER,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = inputs,
                .outputs = options.rootRank == rank_ ? all : Tensors{}},
               [this, all, input = inputs[0], to, member = options.rootRank](TeamCall& call) {
                 Tensors out(static_cast<std::size_t>(size_));
                 out[static_cast<std::size_t>(member)] = input;
                 exchange(call, all, out, input.scalar_type(),
                          [to](TeamCall& c, const Collectives::Parts& parts) {
                            c.collectives().gather(c.group(), to, parts, c.options());
                          });
               });
}

RiffleBackend::Works RiffleBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                            const c10d::ScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == 1, "riffle: scatter takes one output, not ", outputs.size());
  check_tensor(outputs[0], "scatter");
  const Rank from = root(options.rootRank, "scatter");
  Tensors all(static_cast<std::size_t>(size_));
  if (options.rootRank == rank_) {
    TORCH_CHECK_VALUE(inputs.size() == 1 && inputs[0].size() == all.size(),
                      "riffle: scatter: the root needs an input for each of ", size_, " members");
    all = inputs[0];
    for (const at::Tensor& input : all) check_tensor(input, "scatter");
    for (const at::Tensor& input : all) check_same(input, outputs[0], "scatter");
  } else {
    TORCH_CHECK_VALUE(inputs.empty() || inputs[0].empty(),
                      "riffle: scatter: inputs on a rank that is not the root");
  }
  return start({.name = "scatter",
                .title = "riffle:scatter",
                .type = c10d::OpType::SCATTER,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = options.rootRank == rank_ ? all : outputs,
                .outputs = outputs},
               [this, all, output = outputs[0], from, member = options.rootRank](TeamCall& call) {
                 Tensors in(static_cast<std::size_t>(size_));
                 in[static_cast<std::size_t>(member)] = output;
                 exchange(call, in, all, output.scalar_type(),
                          [from](TeamCall& c, const Collectives::Parts& parts) {
                            c.collectives().scatter(c.group(), from, parts, c.options());
                          });
               });
}

RiffleBackend::Works RiffleBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                             const c10d::AllToAllOptions& options) {
  TORCH_CHECK_VALUE(inputs.size() == static_cast<std::size_t>(size_) &&
                        outputs.size() == static_cast<std::size_t>(size_),
                    "riffle: all_to_all takes a tensor for each of ", size_, " members, not ",
                    inputs.size(), " and ", outputs.size());
  for (const Tensors* list : {&inputs, &outputs})
    for (const at::Tensor& tensor : *list) {
      check_tensor(tensor, "all_to_all");
      TORCH_CHECK_VALUE(tensor.scalar_type() == inputs[0].scalar_type(),
                        "riffle: all_to_all of several types at once");
    }
  return start({.name = "all_to_all",
                .title = "riffle:all_to_all",
                .type = c10d::OpType::ALLTOALL,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = inputs,
                .outputs = outputs},
               [this, outputs, inputs](TeamCall& call) {
                 exchange(call, outputs, inputs, inputs[0].scalar_type(),
                          [](TeamCall& c, const Collectives::Parts& parts) {
                            c.collectives().all_to_all(c.group(), parts, c.options());
                          });
               });
}

namespace {

// Along the first dimension, as torch splits.
std::vector<at::Tensor> split_rows(const at::Tensor& tensor, std::vector<int64_t> sizes,
                                   int members) {
  const std::int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  if (sizes.empty()) {
    TORCH_CHECK_VALUE(rows % members == 0, "riffle: all_to_all: ", rows,
                      " rows cannot be split evenly over ", members, " members");
    sizes.assign(static_cast<std::size_t>(members), rows / members);
  }
  TORCH_CHECK_VALUE(sizes.size() == static_cast<std::size_t>(members) &&
                        std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == rows,
                    "riffle: all_to_all: split sizes that do not add up to ", rows);
  std::vector<at::Tensor> parts;
  std::int64_t at = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(tensor.narrow(0, at, size));
    at += size;
  }
  return parts;
}

}  // namespace

RiffleBackend::Works RiffleBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                  std::vector<int64_t>& output_splits,
                                                  std::vector<int64_t>& input_splits,
                                                  const c10d::AllToAllOptions& options) {
  Tensors outputs = split_rows(output, output_splits, size_);
  Tensors inputs = split_rows(input, input_splits, size_);
  return alltoall(outputs, inputs, options);
}

}  // namespace riffle::backend
