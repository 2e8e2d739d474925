// The backend "riffle" of torch.distributed, for tensors on the CPU.
//
// Every call is made ready on the caller's thread, where bad input is refused, and run by the
// group's team, in order. Tensors stay as they were given until then; results are written into the
// tensors that torch passed.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "backend/tensors.h"
#include "backend/work.h"

namespace riffle::backend {

class RiffleBackend final : public c10d::Backend {
 public:
  RiffleBackend(std::shared_ptr<distributed::World> world, distributed::TeamOptions options);
  ~RiffleBackend() override;

  using Works = c10::intrusive_ptr<c10d::Work>;
  using Tensors = std::vector<at::Tensor>;
  using TensorLists = std::vector<Tensors>;

  const std::string getBackendName() const override { return "riffle"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  void setTimeout(std::chrono::milliseconds timeout) override;

  // reductions.cpp
  Works allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Works allreduce_coalesced(Tensors& tensors,
                            const c10d::AllreduceCoalescedOptions& options) override;
  Works allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Works reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Works reduce_scatter(Tensors& outputs, TensorLists& inputs,
                       const c10d::ReduceScatterOptions& options) override;
  Works _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                             const c10d::ReduceScatterOptions& options) override;
  Works reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                        const c10d::ReduceScatterOptions& options) override;

  // moves.cpp
  Works broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Works allgather(TensorLists& outputs, Tensors& inputs,
                  const c10d::AllgatherOptions& options) override;
  Works _allgather_base(at::Tensor& output, at::Tensor& input,
                        const c10d::AllgatherOptions& options) override;
  Works allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                            const c10d::AllgatherOptions& options) override;
  Works allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                        const c10d::AllgatherOptions& options) override;
  Works gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  Works scatter(Tensors& outputs, TensorLists& inputs,
                const c10d::ScatterOptions& options) override;
  Works alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits,
                      std::vector<int64_t>& input_splits,
                      const c10d::AllToAllOptions& options) override;
  Works alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;

  // backend.cpp
  Works send(Tensors& tensors, int to, int tag) override;
  Works recv(Tensors& tensors, int from, int tag) override;
  Works recvAnysource(Tensors& tensors, int tag) override;
  Works barrier(const c10d::BarrierOptions& options) override;

  // groups.cpp
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all_ranks) override;
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return team_->sequence(); }
  bool supportsSplitting() const override { return true; }
  c10::intrusive_ptr<Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                    const std::vector<int>& ranks,
                                    const c10::intrusive_ptr<Options>& options) override;
  void abort() override { team_->abort(); }
  void shutdown() override;

  [[nodiscard]] const std::shared_ptr<distributed::World>& world() const { return world_; }

 private:
  // A call that waits for its turn: what torch sees of it and what is done then.
  struct Call {
    const char* name;   // "all_reduce"
    const char* title;  // "riffle:all_reduce"
    c10d::OpType type;
    std::chrono::milliseconds timeout;
    bool async = true;
    Tensors inputs = {};
    Tensors outputs = {};
  };
  Works start(Call call, std::function<void(distributed::TeamCall&)> body);
  Works receive(Tensors& tensors, int from, int tag, c10d::OpType type);

  [[nodiscard]] Rank root(std::int64_t member, const char* collective) const;
  using Reduce = std::function<void(distributed::TeamCall&, TensorView, const CollectiveOptions&)>;
  static void reduce_tensor(distributed::TeamCall& call, const at::Tensor& tensor,
                            const c10d::ReduceOp& op, bool keep, const Reduce& reduce);
  void scatter_sums(distributed::TeamCall& call, const at::Tensor& output, const Tensors& inputs,
                    const c10d::ReduceOp& op) const;
  void gather_parts(distributed::TeamCall& call, const Tensors& outputs,
                    const at::Tensor& input) const;
  [[nodiscard]] Tensors split_evenly(const at::Tensor& all, const at::Tensor& one,
                                     const char* collective) const;
  using Exchange = std::function<void(distributed::TeamCall&, const Collectives::Parts&)>;
  void exchange(distributed::TeamCall& call, const Tensors& outputs, const Tensors& inputs,
                at::ScalarType type, const Exchange& run) const;

  std::shared_ptr<distributed::World> world_;
  std::string name_;
  std::shared_ptr<distributed::Team> team_;
};

}  // namespace riffle::backend
