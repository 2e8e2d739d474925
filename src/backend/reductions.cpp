// Collectives that reduce.
#include <ATen/Functions.h>

#include "backend/backend.h"

namespace riffle::backend {

using distributed::TeamCall;

namespace {

void check_all(const std::vector<at::Tensor>& tensors, const char* collective,
               const c10d::ReduceOp& op) {
  TORCH_CHECK_VALUE(!tensors.empty(), "riffle: ", collective, " of no tensor");
  for (const at::Tensor& tensor : tensors) {
    check_tensor(tensor, collective);
    static_cast<void>(operation_of(op, tensor.scalar_type()));
  }
}

}  // namespace

// `keep`: what a member that is not the root has is not changed.
void RiffleBackend::reduce_tensor(TeamCall& call, const at::Tensor& tensor,
                                  const c10d::ReduceOp& op, bool keep, const Reduce& reduce) {
  const Operation operation = operation_of(op, tensor.scalar_type());
  Flat flat(tensor, keep);
  at::Tensor values = flat.tensor();
  multiply_before(op, values);
  reduce(call, flat.view(), call.options(operation.reduction));
  if (operation.divide) values.div_(call.group().size(), "trunc");
  if (!keep) flat.give_back();
}

RiffleBackend::Works RiffleBackend::allreduce(Tensors& tensors,
                                              const c10d::AllreduceOptions& options) {
  if (tensors.size() == 1 && tensors[0].is_sparse()) return allreduce_sparse(tensors, options);
  TORCH_CHECK_VALUE(tensors.size() == 1, "riffle: all_reduce takes one tensor, not ",
                    tensors.size());
  check_all(tensors, "all_reduce", options.reduceOp);
  return start({.name = "all_reduce",
                .title = "riffle:all_reduce",
                .type = c10d::OpType::ALLREDUCE,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = tensors,
                .outputs = tensors},
               [tensor = tensors[0], op = options.reduceOp](TeamCall& call) {
                 reduce_tensor(call, tensor, op, false,
                               [](TeamCall& c, TensorView view, const CollectiveOptions& how) {
                                 c.collectives().all_reduce(c.group(), view, how);
                               });
               });
}

RiffleBackend::Works RiffleBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  check_all(tensors, "all_reduce", options.reduceOp);
  for (const at::Tensor& tensor : tensors)
    TORCH_CHECK_VALUE(tensor.scalar_type() == tensors[0].scalar_type(),
                      "riffle: all_reduce of tensors of several types at once");
  return start({.name = "all_reduce",
                .title = "riffle:all_reduce",
                .type = c10d::OpType::ALLREDUCE_COALESCED,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = tensors,
                .outputs = tensors},
               [tensors, op = options.reduceOp](TeamCall& call) {
                 Tensors flat;
                 for (const at::Tensor& tensor : tensors) flat.push_back(tensor.reshape({-1}));
                 const at::Tensor all = at::cat(flat);
                 reduce_tensor(call, all, op, false,
                               [](TeamCall& c, TensorView view, const CollectiveOptions& how) {
                                 c.collectives().all_reduce(c.group(), view, how);
                               });
                 std::int64_t at = 0;
                 for (const at::Tensor& tensor : tensors) {
                   tensor.copy_(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
                   at += tensor.numel();
                 }
               });
}

// Members have different numbers of values, so these are gathered and added by everybody.
RiffleBackend::Works RiffleBackend::allreduce_sparse(Tensors& tensors,
                                                     const c10d::AllreduceOptions& options) {
  TORCH_CHECK_VALUE(tensors.size() == 1 && tensors[0].is_sparse() && tensors[0].is_cpu(),
                    "riffle: sparse all_reduce takes one sparse tensor on the CPU");
  TORCH_CHECK_VALUE(options.reduceOp.op_ == c10d::ReduceOp::SUM,
                    "riffle: all_reduce of sparse tensors can only add");
  return start({.name = "sparse all_reduce",
                .title = "riffle:all_reduce",
                .type = c10d::OpType::_ALLREDUCE_SPARSE,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .outputs = tensors},
               [this, tensor = tensors[0]](TeamCall& call) {
                 const at::Tensor own = tensor.coalesce();
                 const auto gathered = [&](const at::Tensor& input) {
                   Tensors all;
                   for (int m = 0; m < size_; ++m) all.push_back(at::empty_like(input));
                   gather_parts(call, all, input);
                   return all;
                 };
                 // Dimensions first: they must be the same, and the number of values, which need
                 // not.
                 const at::Tensor count = at::full({1}, own._nnz(), at::kLong);
                 const Tensors counts = gathered(count);
                 std::int64_t most = 0;
                 for (const at::Tensor& each : counts)
                   most = std::max(most, each.item<std::int64_t>());
                 if (most == 0) return;
                 auto shape = own._values().sizes().vec();
                 shape[0] = most;
                 at::Tensor indices = at::zeros({own.sparse_dim(), most}, at::kLong);
                 at::Tensor values = at::zeros(shape, own._values().options());
                 indices.narrow(1, 0, own._nnz()).copy_(own._indices());
                 values.narrow(0, 0, own._nnz()).copy_(own._values());
                 const Tensors all_indices = gathered(indices);
                 const Tensors all_values = gathered(values);
                 const at::Tensor sum =
                     at::sparse_coo_tensor(at::cat(all_indices, 1), at::cat(all_values, 0),
                                           tensor.sizes())
                         .coalesce();
                 tensor.copy_(sum);
               });
}

RiffleBackend::Works RiffleBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "riffle: reduce takes one tensor, not ", tensors.size());
  check_all(tensors, "reduce", options.reduceOp);
  const Rank to = root(options.rootRank, "reduce");
  return start({.name = "reduce",
                .title = "riffle:reduce",
                .type = c10d::OpType::REDUCE,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = tensors,
                .outputs = tensors},
               [tensor = tensors[0], op = options.reduceOp, to,
                keep = options.rootRank != rank_](TeamCall& call) {
                 reduce_tensor(call, tensor, op, keep,
                               [to](TeamCall& c, TensorView view, const CollectiveOptions& how) {
                                 c.collectives().reduce(c.group(), to, view, how);
                               });
               });
}

void RiffleBackend::scatter_sums(TeamCall& call, const at::Tensor& output, const Tensors& inputs,
                                 const c10d::ReduceOp& op) const {
  const Operation operation = operation_of(op, output.scalar_type());
  const Lines lines(size_, output);
  for (int member = 0; member < size_; ++member) {
    at::Tensor part = lines.part(team_->place_of(member));
    part.copy_(inputs[static_cast<std::size_t>(member)].view_as(part));
    multiply_before(op, part);
  }
  CollectiveOptions how = call.options(operation.reduction);
  how.padding = lines.padding();
  call.collectives().reduce_scatter(call.group(), lines.view(), how);
  output.copy_(lines.part(team_->place_of(rank_)));
  if (operation.divide) output.div_(size_, "trunc");
}

RiffleBackend::Works RiffleBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                                   const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == 1 && inputs.size() == 1 &&
                        inputs[0].size() == static_cast<std::size_t>(size_),
                    "riffle: reduce_scatter takes one output and an input for each of ", size_,
                    " members");
  check_all(outputs, "reduce_scatter", options.reduceOp);
  check_all(inputs[0], "reduce_scatter", options.reduceOp);
  for (const at::Tensor& input : inputs[0]) check_same(input, outputs[0], "reduce_scatter");
  return start({.name = "reduce_scatter",
                .title = "riffle:reduce_scatter",
                .type = c10d::OpType::REDUCE_SCATTER,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = inputs[0],
                .outputs = outputs},
               [this, output = outputs[0], list = inputs[0],
                op = options.reduceOp](TeamCall& call) { scatter_sums(call, output, list, op); });
}

RiffleBackend::Works RiffleBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  Tensors outputs{output};
  Tensors inputs{input};
  return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

RiffleBackend::Works RiffleBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "riffle: reduce_scatter of ", inputs.size(),
                    " tensors into ", outputs.size());
  check_all(outputs, "reduce_scatter", options.reduceOp);
  check_all(inputs, "reduce_scatter", options.reduceOp);
  TensorLists lists;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    lists.push_back(split_evenly(inputs[i], outputs[i], "reduce_scatter"));
  return start({.name = "reduce_scatter",
                .title = "riffle:_reduce_scatter_base",
                .type = c10d::OpType::_REDUCE_SCATTER_BASE,
                .timeout = options.timeout,
                .async = options.asyncOp,
                .inputs = inputs,
                .outputs = outputs},
               [this, outputs, lists, op = options.reduceOp](TeamCall& call) {
                 for (std::size_t i = 0; i < outputs.size(); ++i)
                   scatter_sums(call, outputs[i], lists[i], op);
               });
}

}  // namespace riffle::backend
